// Batch norm with an optional ReLU over activations (pixels, channels), of any number of channels,
// also of one that does not fill whole vectors. Means, variances and sums are fp32. The formulas
// are those of Ioffe and Szegedy 2015 (arXiv:1502.03167), algorithm 1 and section 3.
//
// Every function runs on the calling thread, in an order that depends on the shape alone. The
// memory of a call is the caller's: `scratch` holds norm_scratch() floats.
#pragma once

#include <cstdint>

#include "train/engine/precision.h"

namespace stoker {

struct PixelNormShape {
  int64_t pixels = 0;  // of all rows
  int channels = 0;
  Precision precision = Precision::fp32;  // of activations and their gradients
  float eps = 1e-5f;
  bool relu = false;  // follows
};

// Per channel. The variance is the biased one.
struct NormStatistics {
  float *mean = nullptr, *variance = nullptr;
};
struct NormParameters {
  const float *scale = nullptr, *shift = nullptr;
};

int64_t norm_scratch(const PixelNormShape& shape);

// Computes the statistics of `input`.
void norm_statistics(const PixelNormShape& shape, const void* input, const NormStatistics& to,
                     float* scratch);

// output = relu((input - mean) / sqrt(variance + eps) * scale + shift)
void norm_forward(const PixelNormShape& shape, const void* input, const NormStatistics& statistics,
                  const NormParameters& parameters, void* output, float* scratch);

// The backward pass of a norm_forward(), in two calls with the same scratch, in which the second
// finds what the first has left. Between them the sums may become those of a larger batch, of which
// these pixels are a part and by whose statistics they were normalised. The ReLU's mask is computed
// again from `input`.
struct NormGradients {
  float *scale = nullptr, *shift = nullptr;
};
// Computes the gradients of the parameters, which are sums over these pixels. `gradient` is that of
// the output.
void norm_parameter_gradients(const PixelNormShape& shape, const void* input,
                              const NormStatistics& statistics, const NormParameters& parameters,
                              const void* gradient, const NormGradients& to, float* scratch);
// Computes the gradient of the input from `sums`, which norm_parameter_gradients() has computed and
// which may have been added up over all `pixels` of a batch. `to` may be the memory of `gradient`.
void norm_input_gradient(const PixelNormShape& shape, const void* input, const void* gradient,
                         const NormGradients& sums, int64_t pixels, void* to, float* scratch);

}  // namespace stoker
