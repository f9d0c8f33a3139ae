// The arithmetic of the device engine's kernels on one element, the same code for the GPU and for
// the host operations of the tests. No memory layout, no parallelism. Pure functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "train/device/types.h"

namespace stoker::device {

// The upper half of an fp32.
struct Bf16 {
  uint16_t bits;
};

STOKER_HOST_DEVICE inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
STOKER_HOST_DEVICE inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

STOKER_HOST_DEVICE inline float to_float(float value) { return value; }
STOKER_HOST_DEVICE inline float to_float(Bf16 value) {
  return float_of(static_cast<uint32_t>(value.bits) << 16);
}

template <typename Number>
STOKER_HOST_DEVICE Number number(float value);
template <>
STOKER_HOST_DEVICE inline float number<float>(float value) {
  return value;
}
template <>  // nearest, ties to even; NaN stays NaN
STOKER_HOST_DEVICE inline Bf16 number<Bf16>(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  }
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

STOKER_HOST_DEVICE inline bool is_finite(float value) {
  return (bits_of(value) & 0x7fffffffu) < 0x7f800000u;
}

// --- input ---

STOKER_HOST_DEVICE inline float normalised(uint8_t pixel, float mean, float stddev) {
  return (static_cast<float>(pixel) / 255.0f - mean) / stddev;
}

STOKER_HOST_DEVICE inline int reflected(int i, int size) {
  if (i < 0) return -i;
  return i >= size ? 2 * size - 2 - i : i;
}

// Returns the image's column (or line) that a View shows at `i`.
STOKER_HOST_DEVICE inline int seen_at(int i, int size, int shift, bool flip) {
  return reflected((flip ? size - 1 - i : i) + shift, size);
}

// --- activations ---

STOKER_HOST_DEVICE inline float normal_cdf(float t) {
  return 0.5f * (1.0f + erff(t * 0.70710678118654752f));
}

STOKER_HOST_DEVICE inline float sigmoid(float t) { return 1.0f / (1.0f + expf(-t)); }

STOKER_HOST_DEVICE inline float activate(Activation kind, float t) {
  if (kind == Activation::relu) return t > 0 ? t : 0.0f;
  if (kind == Activation::gelu) return t * normal_cdf(t);
  if (kind == Activation::tanh) return tanhf(t);
  if (kind == Activation::sigmoid) return sigmoid(t);
  return t;
}

// Returns d activate / d t. It takes the output of ReLU, tanh and sigmoid (reads_output()), and
// else t; for ReLU either will do.
STOKER_HOST_DEVICE inline float activation_slope(Activation kind, float seen) {
  if (kind == Activation::relu) return seen > 0 ? 1.0f : 0.0f;
  if (kind == Activation::gelu) {
    return normal_cdf(seen) + seen * 0.39894228040143268f * expf(-0.5f * seen * seen);
  }
  if (kind == Activation::tanh) return 1.0f - seen * seen;
  if (kind == Activation::sigmoid) return seen * (1.0f - seen);
  return 1.0f;
}

// --- pools ---

// Returns whether a value becomes the maximum of its window: the first among equals; NaN always.
STOKER_HOST_DEVICE inline bool wins(float value, float best, bool first) {
  return first || value > best || value != value;
}

// One axis of a pool. Windows are at equal distances, or, of an adaptive pool, output i sees the
// input from floor(i * in / out) to ceil((i + 1) * in / out), as in PyTorch.
struct PoolAxis {
  int in, out, kernel, stride, padding;
  bool adaptive;
};
STOKER_HOST_DEVICE inline PoolAxis pool_rows(const PoolShape& s) {
  return {s.in_height, s.out_height, s.kernel.height, s.stride, s.padding.height, s.adaptive};
}
STOKER_HOST_DEVICE inline PoolAxis pool_columns(const PoolShape& s) {
  return {s.in_width, s.out_width, s.kernel.width, s.stride, s.padding.width, s.adaptive};
}

struct PoolSpan {
  int begin, end;
};

// Returns the part of the input that output `i` sees.
STOKER_HOST_DEVICE inline PoolSpan pool_window(const PoolAxis& a, int i) {
  if (a.adaptive) {
    return {static_cast<int>(int64_t{i} * a.in / a.out),
            static_cast<int>((int64_t{i + 1} * a.in + a.out - 1) / a.out)};
  }
  const int begin = i * a.stride - a.padding, end = begin + a.kernel;
  return {begin < 0 ? 0 : begin, end > a.in ? a.in : end};
}

// Returns the outputs that see input `i`.
STOKER_HOST_DEVICE inline PoolSpan pool_readers(const PoolAxis& a, int i) {
  if (a.adaptive) {
    return {static_cast<int>(int64_t{i} * a.out / a.in),
            static_cast<int>((int64_t{i + 1} * a.out + a.in - 1) / a.in)};
  }
  const int at = i + a.padding, end = at / a.stride + 1;
  return {at < a.kernel ? 0 : (at - a.kernel) / a.stride + 1, end > a.out ? a.out : end};
}

// Returns by how many values an average pool divides, along one axis. Those of the padding count.
STOKER_HOST_DEVICE inline int pool_divisor(const PoolAxis& a, const PoolSpan& window) {
  return a.adaptive ? window.end - window.begin : a.kernel;
}

// --- batch norm ---

// Sums of (x - origin) and of its square. The origin is a value of the channel itself, which limits
// cancellation if the mean is far from 0.
struct Moments {
  float sum = 0, squares = 0;

  STOKER_HOST_DEVICE void add(float x, float origin) {
    const float d = x - origin;
    sum += d;
    squares += d * d;
  }
  STOKER_HOST_DEVICE void merge(const Moments& other) {
    sum += other.sum;
    squares += other.squares;
  }
};

struct NormStatistics {
  double mean, variance;  // the variance is the biased one
};

// From the sums of (x - origin) and of its square over `count` values.
STOKER_HOST_DEVICE inline NormStatistics norm_statistics(double sum, double squares, float origin,
                                                         double count) {
  const double offset = sum / count;
  const double rest = squares / count - offset * offset;
  return {origin + offset, rest > 0 ? rest : 0};
}

// The statistics of the rows of all replicas, of which each has brought its own, for channel `c`.
// See unite_statistics() in train/collective/norm_exchange.h.
STOKER_HOST_DEVICE inline NormStatistics united_statistics(const NormReplicas& all, int channels,
                                                           int c) {
  double sum = 0, squares = 0;
  for (int rank = 0; rank < all.count; ++rank) {
    sum += all.numbers[rank * all.stride + c];
  }
  const double mean = sum / all.count;
  for (int rank = 0; rank < all.count; ++rank) {
    const float* own = all.numbers + rank * all.stride;
    const double distance = own[c] - mean;
    squares += own[channels + c] + distance * distance;
  }
  return {mean, squares / all.count};
}

struct NormChannel {
  float mean, inverse, scale, shift;  // y = x * scale + shift
  float distance, moment;             // for the running statistics
};

STOKER_HOST_DEVICE inline NormChannel norm_channel(const NormStatistics& of, float eps, float gamma,
                                                   float beta, float running_mean) {
  const auto variance = static_cast<float>(of.variance);
  NormChannel c;
  c.mean = static_cast<float>(of.mean);
  c.inverse = 1.0f / sqrtf(variance + eps);
  c.scale = gamma * c.inverse;
  c.shift = beta - c.mean * c.scale;
  c.distance = static_cast<float>(of.mean - running_mean);
  c.moment = variance + c.distance * c.distance;
  return c;
}

STOKER_HOST_DEVICE inline float norm_value(float x, float scale, float shift) {
  return x * scale + shift;
}

// Returns dy multiplied by the slope of the activation. With a residual, a mask stores where ReLU
// kept the sum, because that cannot be computed from x alone. (A GELU of a sum is not fused.)
STOKER_HOST_DEVICE inline float gradient_behind(Activation kind, bool masked, bool kept, float dy,
                                                float x, float scale, float shift) {
  if (kind == Activation::none) return dy;
  if (masked) return kept ? dy : 0.0f;
  return dy * activation_slope(kind, norm_value(x, scale, shift));
}

// Sums over a channel, of g and of g * (x - mean).
struct NormSums {
  double sum, product;
};

// Adds up what the replicas have brought for channel `c`, in the order of the replicas.
STOKER_HOST_DEVICE inline NormSums united_sums(const NormReplicas& all, int channels, int c) {
  NormSums united = {0, 0};
  for (int rank = 0; rank < all.count; ++rank) {
    const float* own = all.numbers + rank * all.stride;
    united.sum += own[c];
    united.product += own[channels + c];
  }
  return united;
}

// From the sums over `count` values of a channel: dx = a * g + b * x + c.
struct NormSlope {
  float a, b, c;
  float dgamma, dbeta;
};
STOKER_HOST_DEVICE inline NormSlope norm_slope(const NormSums& of, double count, float mean,
                                               float inverse, float gamma) {
  NormSlope s;
  s.dbeta = static_cast<float>(of.sum);
  s.dgamma = static_cast<float>(of.product * inverse);
  s.a = gamma * inverse;
  const double along = -static_cast<double>(s.a) * inverse * inverse * of.product / count;
  s.b = static_cast<float>(along);
  s.c = static_cast<float>(-static_cast<double>(s.a) * of.sum / count - along * mean);
  return s;
}

}  // namespace stoker::device
