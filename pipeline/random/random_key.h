// Counter-based randomness: every number is a pure function of (seed, epoch, sample, draw). There
// is no state and no thread-local generator: any thread gets the same numbers in any order.
// Algorithm: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
// Different (seed, epoch, sample, draw) are different inputs of the block function, so nothing
// aliases and neighbouring seeds are independent. Orders use sample -1 for the order of an
// epoch, and the draws of pipeline/order/order_draws.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "staging/philox.h"

namespace stoker {

class RandomKey {
 public:
  // The counter has room for the sample (64 bits), the draw (32) and half of the epoch. The other
  // half is zero in every realistic run; if it is not, it makes a new key, and only then do
  // different inputs depend on a hash (of 64 bits).
  RandomKey(uint64_t seed, int64_t epoch, int64_t sample)
      : draws_{.key = {low_half(seed), high_half(seed)},
               .counter = {low_half(static_cast<uint64_t>(sample)),
                           high_half(static_cast<uint64_t>(sample)),
                           low_half(static_cast<uint64_t>(epoch))}} {
    const uint32_t epoch_high = high_half(static_cast<uint64_t>(epoch));
    if (epoch_high == 0) return;
    const auto derived = philox4x32({epoch_high, 0, 0, 0}, draws_.key);
    draws_.key = {derived[0], derived[1]};
  }
  uint64_t bits(uint32_t draw) const { return draws_.bits(draw); }
  // Sets draws[i] to bits(first + i), by vectors.
  void bits(uint32_t first, std::span<uint64_t> draws) const;
  double uniform(uint32_t draw) const {  // [0, 1), 53 bits
    return static_cast<double>(bits(draw) >> 11) * 0x1p-53;
  }
  double uniform(uint32_t draw, double low, double high) const;  // [low, high)
  int64_t below(uint32_t draw, int64_t bound) const {  // [0, bound), unbiased to 2^-64 * bound
    __extension__ using uint128 = unsigned __int128;
    return static_cast<int64_t>((uint128{bits(draw)} * static_cast<uint64_t>(bound)) >> 64);
  }
  double normal(uint32_t draw) const;  // mean 0, deviation 1
  // The same draws, for code that a GPU runs.
  const PhiloxDraws& draws() const { return draws_; }

 private:
  static uint32_t low_half(uint64_t value) { return static_cast<uint32_t>(value); }
  static uint32_t high_half(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

  // The key has the seed and the high half of the epoch, the counter the sample and the epoch's low
  // half.
  PhiloxDraws draws_;
};

}  // namespace stoker
