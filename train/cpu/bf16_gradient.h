// The gradient of a convolution's weights in bf16: for each pixel of the kernel a product of
// matrices, inputs by outputs, whose inner dimension is the pixels of the output. It uses AVX-512's
// instruction that adds pairs of bf16 products to fp32; a pair is the same channel of two pixels,
// and both sides are interleaved so, a block of pixels at a time. The next block
// is fetched meanwhile, which oneDNN 2.6's kernels for that instruction do not do.
//
// Runs on the calling thread, in an order that depends on the shape alone.
#pragma once

#include <cstdint>

namespace stoker {

// Activations are (rows, height, width, channels).
struct Bf16GradientShape {
  int rows = 0;
  int in_channels = 0, out_channels = 0;
  int in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int kernel_height = 1, kernel_width = 1;
  int stride = 1;
  int padding_height = 0, padding_width = 0;
};

// Whether bf16_gradient() takes these channels, and this build has it. The CPU must have
// AVX512_BF16.
bool has_bf16_gradient(const Bf16GradientShape& shape);

int64_t bf16_gradient_scratch(const Bf16GradientShape& shape);  // floats
// `gradient` is (out / 16, in / 16, kernel height, kernel width, 16 in, 16 out): oneDNN's
// OIhw16i16o, from which it makes the weights that its kernels read in less time than from rows of
// all outputs. `scratch` begins at a multiple of 64 bytes.
void bf16_gradient(const Bf16GradientShape& shape, const uint16_t* input,
                   const uint16_t* output_gradient, float* gradient, float* scratch);

}  // namespace stoker
