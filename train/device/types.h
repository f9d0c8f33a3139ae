// Shapes and arguments of the device engine's operations: plain structs that both nvcc and the
// host's compiler can read. Activations are (rows, H, W, C), C fastest, fp32 or bf16; values per
// channel, logits and parameters are fp32.
#pragma once

#include <cstdint>

#include "train/engine/engine.h"
#include "train/graph/update_arithmetic.h"

namespace stoker {

constexpr int64_t kFloat = sizeof(float);  // bytes

struct ImageShape {
  int rows = 0, height = 0, width = 0;
  int channels = 3;  // of the output
  int seen = 3;      // of a pixel's three values, the first ones; the output's other channels are 0
  Precision type = Precision::fp32;
  float mean[3] = {}, stddev[3] = {};
};

struct ConvShape {
  int rows = 0;
  int in_channels = 0, in_height = 0, in_width = 0;
  int out_channels = 0, out_height = 0, out_width = 0;
  Size kernel{1, 1};
  int stride = 1;
  Size padding{0, 0};
  Precision type = Precision::fp32;  // of x, y, weights (OHWI) and their gradients
  int read_channels = 0;  // of an image: how many of in_channels, the first ones; the others are 0
  bool operator==(const ConvShape&) const = default;
};

struct NormShape {
  int64_t pixels = 0;  // rows * H * W
  int channels = 0;
  Precision type = Precision::fp32;
  float eps = 1e-5f;
  Activation activation = Activation::none;  // of normalised x, plus the residual if there is one
};

// Sums per channel divide the pixels into at most kMaxSplits splits, and first add up groups of
// kGroupSplits of them.
constexpr int kMaxSplits = 640;
constexpr int kGroupSplits = 32;

// Values per channel that a batch norm in training keeps from forward to backward: four planes of
// `channels` floats.
enum class NormPlane : uint8_t { mean, inverse, scale, shift, count };

struct NormForward {
  const void* x = nullptr;
  const void* residual = nullptr;  // or null; type and shape of x
  const float* gamma = nullptr;
  const float* beta = nullptr;
  const float* running_mean = nullptr;
  const float* running_variance = nullptr;  // inference only
  void* y = nullptr;
  // Training with a residual and ReLU: where y > 0, for the backward pass (norm_mask_bytes()); or
  // null.
  uint8_t* mask = nullptr;
  // Training only: planes; (2, channels) moments: distance of the mean from the running mean, and
  // variance + its square (engines average these over micro-batches); scratch.
  float* planes = nullptr;
  float* moments = nullptr;
  void* scratch = nullptr;
  // Training: (2, channels) sums of x and of its square if the preceding convolution has computed
  // them; or null.
  const float* sums = nullptr;
};

// Numbers of a batch norm whose replicas are synchronised (train/collective/norm_exchange.h), in
// device memory: (2, channels) of each of `count` replicas, `stride` floats apart. Forward: the
// mean and the biased variance of a replica's rows. Backward: the sums of g, its gradient before
// the activation, and of g * (x - mean).
struct NormReplicas {
  const float* numbers = nullptr;
  int64_t stride = 0;
  int count = 1;
};

// A mask has one byte for each group of this many channels of a pixel, with the first channel in
// the lowest bit. A thread of the kernels reads and writes one group at a time.
inline int norm_mask_width(const NormShape& s) {
  const int wide = s.type == Precision::bf16 ? 8 : 4;
  return s.channels % wide == 0 ? wide : 1;
}
inline int64_t norm_mask_bytes(const NormShape& s) {
  return s.pixels * (s.channels / norm_mask_width(s));
}

struct NormBackward {
  const void* x = nullptr;
  const uint8_t* mask = nullptr;  // with a residual and ReLU: where y > 0
  const void* dy = nullptr;
  const void* dy2 = nullptr;  // or null; a second contribution, added to dy
  const float* gamma = nullptr;
  const float* planes = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;
  void* dx = nullptr;  // or null; may be dy
  // (dy + dy2) times the slope of the activation; only with a residual; may be dy.
  void* dresidual = nullptr;
  void* scratch = nullptr;
};

struct PoolShape {
  int rows = 0, channels = 0;
  int in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  Size kernel{1, 1};
  int stride = 1;
  Size padding{0, 0};
  // Average pools: the windows divide the input, as torch.nn.AdaptiveAvgPool2d; there are no
  // kernel, stride and padding.
  bool adaptive = false;
  Precision type = Precision::fp32;
};

// Copies `channels` of each pixel, from the first channel `from` of the source's to the first
// channel `to` of the target's.
struct ChannelsShape {
  int64_t pixels = 0;  // rows * H * W
  int channels = 0;
  int source_channels = 0, from = 0;
  int target_channels = 0, to = 0;
  Precision type = Precision::fp32;
};

// Dropout of each row's values: see train/engine/dropout.h.
struct DropoutShape {
  int rows = 0, channels = 0;
  int64_t pixels = 0;  // of a row
  uint64_t key = 0;
  float rate = 0;
  Precision type = Precision::fp32;
};

// Appends zero channels and takes every stride-th pixel.
struct PadShape {
  int rows = 0, stride = 1;
  int in_channels = 0, in_height = 0, in_width = 0;
  int out_channels = 0, out_height = 0, out_width = 0;
  Precision type = Precision::fp32;
};

// Returns the length of a row of logits: matrix units are fast if it is a multiple of 8.
constexpr int logit_stride(int classes) { return (classes + 7) / 8 * 8; }

// logits = scale * (x * weight^T + bias). Rows of logits and of their gradient are `stride` values
// apart.
struct LinearShape {
  int rows = 0, features = 0, classes = 0, stride = 0;
  float scale = 1;
  Precision type = Precision::fp32;  // of x, weight, dlogits and dx; logits and dweight are fp32
};

struct LossShape {
  LossKind kind = LossKind::softmax;
  int rows = 0, classes = 0, stride = 0;
  float label_smoothing = 0;
  float scale = 1;                   // of the gradient
  Precision type = Precision::fp32;  // of the gradient
};

// Labels, and the weight of each row: (rows) each, in device memory.
struct LossRows {
  const int32_t* labels = nullptr;
  const float* weights = nullptr;
  // The rest of a row's target is its second label; where there is none, the two are the same.
  const int32_t* mix_labels = nullptr;
  const float* mix_weights = nullptr;
  // binary: (rows, classes), from 0 to 1, instead of labels. Or null.
  const float* targets = nullptr;
};

constexpr int64_t kChunkNumbers = 4096;  // of a TensorChunk

// UpdateRates and, after it, a TensorRate for each tensor change from step to step: they are in
// device memory, so that a captured graph reads them.
struct UpdateShape {
  const TensorChunk* chunks = nullptr;  // device
  int chunk_count = 0, tensor_count = 0;
  const StatisticChannel* channels = nullptr;  // device
  int channel_count = 0;
  int64_t numbers = 0;  // of the reduced gradients, as in GradientLayout
  int64_t moments = 0, metrics = 0;
  float nominal_rows = 0;
};

}  // namespace stoker
