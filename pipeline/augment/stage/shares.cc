#include "pipeline/augment/stage/shares.h"

#include <cmath>

namespace stoker {
namespace {

constexpr uint32_t kGammaTries = 64;

// A gamma variate (Marsaglia and Tsang 2000, "A simple method for generating gamma variables"), for
// a shape below 1 by their boost. Takes numbers from `first` on.
double gamma(const RandomKey& key, uint32_t first, double shape) {
  double boost = 1;
  if (shape < 1) {
    boost = std::pow(1 - key.uniform(first), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3.0, c = 1 / std::sqrt(9 * d);
  for (uint32_t attempt = 0; attempt < kGammaTries; ++attempt) {
    const double x = key.normal(first + 1 + 2 * attempt);
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    const double u = 1 - key.uniform(first + 2 + 2 * attempt);
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return boost * d * v;
  }
  return boost * d;  // never, with probability 1 - 0.05^64
}

}  // namespace

void draw_shares(const RandomKey& key, uint32_t first, double alpha, std::span<double> shares) {
  double sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i] = gamma(key, first + static_cast<uint32_t>(i) * kDrawsPerShare, alpha);
    sum += shares[i];
  }
  for (double& share : shares)
    share = sum > 0 ? share / sum : 1.0 / static_cast<double>(shares.size());
}

}  // namespace stoker
