#include "pipeline/random_key.h"

#include <cmath>
#include <numbers>

namespace stoker {
namespace {

uint32_t low_half(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high_half(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
uint64_t join(uint32_t high, uint32_t low) { return (static_cast<uint64_t>(high) << 32) | low; }

double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

// The counter has room for the sample (64 bits), the draw (32) and half of the epoch. The other
// half is zero in every realistic run; if it is not, it makes a new key, and only then do different
// inputs depend on a hash (of 64 bits).
RandomKey::RandomKey(uint64_t seed, int64_t epoch, int64_t sample)
    : key_{low_half(seed), high_half(seed)},
      counter_{low_half(static_cast<uint64_t>(sample)), high_half(static_cast<uint64_t>(sample)),
               low_half(static_cast<uint64_t>(epoch)), 0} {
  const uint32_t epoch_high = high_half(static_cast<uint64_t>(epoch));
  if (epoch_high != 0) {
    const auto derived = philox4x32({epoch_high, 0, 0, 0}, key_);
    key_ = {derived[0], derived[1]};
  }
}

double RandomKey::uniform(uint32_t draw) const { return unit_interval(bits(draw)); }

double RandomKey::uniform(uint32_t draw, double low, double high) const {
  const double value = low + (high - low) * uniform(draw);
  return value < high ? value : low;  // rounding may reach `high`
}

double RandomKey::normal(uint32_t draw) const {
  const auto words = block(draw);
  const double radius_uniform = 1.0 - unit_interval(join(words[0], words[1]));  // (0, 1]
  const double angle = 2.0 * std::numbers::pi * unit_interval(join(words[2], words[3]));
  return std::sqrt(-2.0 * std::log(radius_uniform)) * std::cos(angle);  // Box-Muller
}

}  // namespace stoker
