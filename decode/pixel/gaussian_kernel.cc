#include "decode/pixel/gaussian_kernel.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr int kTorchLanes = 16;  // floats of an AVX-512 vector

// exp(x) for x <= 0 as SLEEF computes it: 2^q e^r with x = q ln 2 + r, where ln 2 is two floats and
// e^r a polynomial.
float sleef_exp(float x) {
  if (x < -104.0f) return 0;
  const float q = std::rint(x * 1.4426950408889634f);
  const float r = std::fma(q, -1.428606765330187e-06f, std::fma(q, -0.693145751953125f, x));
  float p = 0.00019852761761285365f;
  for (const float term : {0.0013930436f, 0.008333361f, 0.041666485f, 0.16666667f, 0.5f}) {
    p = std::fma(p, r, term);
  }
  return std::ldexp(1.0f + std::fma(r * r, p, r), static_cast<int>(q));
}

// A kernel of torch's, whole, as its parts are made.
class TorchKernel {
 public:
  TorchKernel(int size, double sigma)
      : size_(size), sigma_(static_cast<float>(std::clamp(sigma, 1e-6, 1e6))) {
    limit_ = static_cast<float>((size - 1) / (2.0 * std::sqrt(2.0)));
    step_ = size > 1 ? (limit_ - -limit_) / static_cast<float>(size - 1) : 0.0f;
    for (int i = 0; i < size; ++i) most_ = std::max(most_, exponent(i));
  }

  // The exponents of the softmax, before it is divided by the sum.
  float value(int i) const { return sleef_exp(exponent(i) - most_); }

  // Torch adds short rows in order. Of longer ones it adds whole vectors first, then the upper half
  // of the lanes to the lower one until one lane is left.
  float sum() const {
    float lanes[kTorchLanes] = {};
    const int used = size_ < kTorchLanes ? 1 : kTorchLanes;
    for (int i = 0; i < size_; ++i) {
      lanes[i % used] = i < used ? value(i) : lanes[i % used] + value(i);
    }
    for (int half = used / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  }

 private:
  float exponent(int i) const {
    // linspace counts from the nearer end.
    const float x = i < size_ / 2 ? std::fma(step_, static_cast<float>(i), -limit_)
                                  : std::fma(-step_, static_cast<float>(size_ - 1 - i), limit_);
    const float ratio = x / sigma_;
    return -(ratio * ratio);
  }

  int size_;
  float sigma_, limit_ = 0, step_ = 0;
  float most_ = -INFINITY;
};

}  // namespace

HalfKernel make_gaussian_kernel(int size, double sigma, float* weights) {
  const TorchKernel kernel(size, sigma);
  const float scale = 1.0f / kernel.sum();
  for (int t = 0; t <= size / 2; ++t) weights[t] = kernel.value(size / 2 + t) * scale;
  return {weights, size / 2};
}

}  // namespace stoker
