// 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3) (Lavin and Gray 2016,
// arXiv:1509.09308, section 4.3): tiles of 6x6 inputs and 4x4 outputs, which overlap by two, are
// multiplied in a transformed domain, where a convolution is 36 products of matrices. That takes a
// quarter of the multiplications of the direct way, and rounds a little more: its results differ by
// about 1e-6 of a tensor's norm. Gradients of the weights are the same products transposed. All of
// that is in fp32, also for activations in bf16, which are converted on their way in and out.
//
// Smaller tiles, F(2x2, 3x3), are left out: they need 2.25 times fewer multiplications instead of
// 4, so they would win only for outputs of one or two pixels a side.
//
// Every function runs on the calling thread, in an order that depends on the shape alone. The
// memory of a call is the caller's: `scratch` holds as many floats as its *_scratch() says, at an
// address that is a multiple of 64 bytes.
#pragma once

#include <cstdint>

#include "train/engine/precision.h"

namespace stoker {

// Where the activations of a convolution lie: (rows, H, W, C), or blocks of 16 channels (rows,
// C/16, H, W, 16) with zeros behind the last channel.
enum class WinogradLayout : uint8_t { nhwc, blocked };

struct WinogradShape {
  int rows = 0;
  int in_channels = 0, out_channels = 0;
  int height = 0, width = 0;  // of the input
  int padding = 1;            // on all four sides, 0 to 2
  WinogradLayout layout = WinogradLayout::nhwc;
  Precision precision = Precision::fp32;  // of activations and their gradients

  int out_height() const { return height + 2 * padding - 2; }
  int out_width() const { return width + 2 * padding - 2; }
  // The convolution that computes the gradient of the input from that of the output.
  WinogradShape backward() const;
};

// Whether this is faster than a direct convolution: if the outputs fill their tiles, and there are
// enough tiles and channels for what the transforms cost.
bool winograd_pays(const WinogradShape& shape);

// Weights are (3, 3, input channels, output channels), in fp32.
struct WinogradForward {
  const void* input = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;  // (output channels), or null
  bool relu = false;            // applied to the output
  void* output = nullptr;
};
int64_t winograd_forward_scratch(const WinogradShape& shape);
void winograd_forward(const WinogradShape& shape, const WinogradForward& call, float* scratch);

// The gradient of the input. `shape` and the weights are the forward convolution's.
struct WinogradBackwardData {
  const void* output_gradient = nullptr;
  const float* weights = nullptr;
  void* input_gradient = nullptr;
};
int64_t winograd_backward_data_scratch(const WinogradShape& shape);
void winograd_backward_data(const WinogradShape& shape, const WinogradBackwardData& call,
                            float* scratch);

// The gradients of the weights, (3, 3, input channels, output channels), and of the bias.
struct WinogradBackwardWeights {
  const void* input = nullptr;
  const void* output_gradient = nullptr;
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;  // (output channels), or null
};
int64_t winograd_backward_weights_scratch(const WinogradShape& shape);
void winograd_backward_weights(const WinogradShape& shape, const WinogradBackwardWeights& call,
                               float* scratch);

}  // namespace stoker
