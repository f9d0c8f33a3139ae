// Batch norm with an optional ReLU over activations (pixels, channels), of any number of channels,
// also of such as do not fill whole vectors. Means, variances and sums are
// fp32. The formulas are those of Ioffe and Szegedy 2015 (arXiv:1502.03167), algorithm 1 and
// section 3.
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

struct NormGradients {
  const void* output = nullptr;
  void* input = nullptr;  // may be the output's memory
  float *scale = nullptr, *shift = nullptr;
};
// The backward pass of a norm_forward() by the batch's own statistics. The ReLU's mask is computed
// again from `input`.
void norm_backward(const PixelNormShape& shape, const void* input, const NormStatistics& statistics,
                   const NormParameters& parameters, const NormGradients& gradients,
                   float* scratch);

}  // namespace stoker
