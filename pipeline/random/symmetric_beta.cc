#include "pipeline/random/symmetric_beta.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace stoker {
namespace {

// Parts of ln 2: the upper one has zeros at its end, so that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;

constexpr int kDoubleFractionBits = 52, kExponentBias = 1023;

// A log of a share below this is that of 0: its exponential vanishes beside any other.
constexpr double kVanishes = -700;

// 1 / n! for n from 14 down to 0.
constexpr std::array<double, 15> kTaylor = [] {
  std::array<double, 15> terms{};
  double factorial = 1;
  for (size_t n = 0; n < terms.size(); ++n) {
    if (n > 0) factorial *= static_cast<double>(n);
    terms[terms.size() - 1 - n] = 1 / factorial;
  }
  return terms;
}();

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kExponentBias)
                               << kDoubleFractionBits);
}

double joehnk(const RandomKey& key, uint32_t draw, double alpha) {
  for (;; draw += 2) {
    // The logarithms of x = u^(1 / alpha) and y = v^(1 / alpha), whose share of both is drawn.
    const double log_x = portable_log(1 - key.uniform(draw)) / alpha;
    const double log_y = portable_log(1 - key.uniform(draw + 1)) / alpha;
    const double x = portable_exp(log_x), y = portable_exp(log_y);
    if (x + y > 1) continue;
    if (std::max(log_x, log_y) > kVanishes / 2) return x / (x + y);
    // A small alpha makes both vanish, and only their logarithms say which is larger.
    if (log_x >= log_y) return 1 / (1 + portable_exp(log_y - log_x));
    const double ratio = portable_exp(log_x - log_y);
    return ratio / (1 + ratio);
  }
}

double ulrich(const RandomKey& key, uint32_t draw, double alpha) {
  for (;; draw += 2) {
    const double u = key.uniform(draw), v = key.uniform(draw + 1, -1, 1);
    const double s = u * u + v * v;
    if (s == 0 || s > 1) continue;
    const double power = portable_exp(portable_log(s) * 2 / (2 * alpha - 1));
    return 0.5 + u * v / s * std::sqrt(1 - power);
  }
}

}  // namespace

double portable_log(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  int exponent = static_cast<int>(bits >> kDoubleFractionBits) - kExponentBias;
  double mantissa = value / power_of_two(exponent);
  if (mantissa > 1.41421356) {
    mantissa /= 2;
    ++exponent;
  }
  // ln m = 2 artanh((m - 1) / (m + 1)), by its series.
  const double s = (mantissa - 1) / (mantissa + 1), square = s * s;
  double series = 0;
  for (int odd = 23; odd >= 1; odd -= 2) series = series * square + 1.0 / odd;
  return exponent * kLn2High + (exponent * kLn2Low + 2 * s * series);
}

double portable_exp(double value) {
  if (value < kVanishes) return 0;
  const double exponent = std::floor(value / kLn2High + 0.5);
  const double rest = value - exponent * kLn2High - exponent * kLn2Low;
  double series = 0;
  for (const double term : kTaylor) series = series * rest + term;
  return series * power_of_two(static_cast<int>(exponent));
}

double symmetric_beta(const RandomKey& key, uint32_t first_draw, double alpha) {
  return alpha <= 0.5 ? joehnk(key, first_draw, alpha) : ulrich(key, first_draw, alpha);
}

}  // namespace stoker
