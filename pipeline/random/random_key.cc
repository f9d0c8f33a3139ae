#include "pipeline/random/random_key.h"

#include <cmath>
#include <numbers>

#include "decode/philox_draws.h"

namespace stoker {
namespace {

uint64_t join(uint32_t high, uint32_t low) { return (static_cast<uint64_t>(high) << 32) | low; }

double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

void RandomKey::bits(uint32_t first, std::span<uint64_t> draws) const {
  fill_philox_draws(draws_.key, draws_.counter, first, draws);
}

double RandomKey::uniform(uint32_t draw, double low, double high) const {
  const double value = low + (high - low) * uniform(draw);
  return value < high ? value : low;  // rounding may reach `high`
}

double RandomKey::normal(uint32_t draw) const {
  const auto words = draws_.block(draw);
  const double radius_uniform = 1.0 - unit_interval(join(words[0], words[1]));  // (0, 1]
  const double angle = 2.0 * std::numbers::pi * unit_interval(join(words[2], words[3]));
  return std::sqrt(-2.0 * std::log(radius_uniform)) * std::cos(angle);  // Box-Muller
}

}  // namespace stoker
