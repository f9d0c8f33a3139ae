#include "pipeline/random_key.h"

#include <cmath>
#include <numbers>

namespace stoker {
namespace {

__extension__ using uint128 = unsigned __int128;

constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

uint32_t low_half(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high_half(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
uint64_t join(uint32_t high, uint32_t low) { return (static_cast<uint64_t>(high) << 32) | low; }

double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * counter[0];
    const uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * counter[2];
    counter = {high_half(product1) ^ counter[1] ^ key[0], low_half(product1),
               high_half(product0) ^ counter[3] ^ key[1], low_half(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// The counter has room for the sample (64 bits), the draw (32) and half of the epoch. The other
// half is zero in every run that anybody will wait for; if it is not, it makes a new key, and
// only then does "different" rest on a hash (of 64 bits).
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

std::array<uint32_t, 4> RandomKey::block(uint32_t draw) const {
  return philox4x32({counter_[0], counter_[1], counter_[2], draw}, key_);
}

uint64_t RandomKey::bits(uint32_t draw) const {
  const auto words = block(draw);
  return join(words[0], words[1]);
}

double RandomKey::uniform(uint32_t draw) const { return unit_interval(bits(draw)); }

double RandomKey::uniform(uint32_t draw, double low, double high) const {
  const double value = low + (high - low) * uniform(draw);
  return value < high ? value : low;  // rounding may reach `high`
}

int64_t RandomKey::below(uint32_t draw, int64_t bound) const {
  const uint128 product = static_cast<uint128>(bits(draw)) * static_cast<uint64_t>(bound);
  return static_cast<int64_t>(product >> 64);
}

double RandomKey::normal(uint32_t draw) const {
  const auto words = block(draw);
  const double radius_uniform = 1.0 - unit_interval(join(words[0], words[1]));  // (0, 1]
  const double angle = 2.0 * std::numbers::pi * unit_interval(join(words[2], words[3]));
  return std::sqrt(-2.0 * std::log(radius_uniform)) * std::cos(angle);  // Box-Muller
}

}  // namespace stoker
