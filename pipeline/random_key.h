// Counter-based randomness: every number is a pure function of (seed, epoch, sample, draw). There
// is no state and no thread-local generator: any thread gets the same numbers in any order.
// Algorithm: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
// Different (seed, epoch, sample, draw) are different inputs of the block function, so nothing
// aliases and neighbouring seeds are independent. Orders use sample -1 for the order of an
// epoch, and the draws of pipeline/order/order_draws.h.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

// Computes one block of Philox4x32 with 10 rounds. It is in the header to be inlined: the blocks of
// several draws are then computed in parallel.
inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

class RandomKey {
 public:
  // The counter has room for the sample (64 bits), the draw (32) and half of the epoch. The other
  // half is zero in every realistic run; if it is not, it makes a new key, and only then do
  // different inputs depend on a hash (of 64 bits).
  RandomKey(uint64_t seed, int64_t epoch, int64_t sample)
      : key_{low_half(seed), high_half(seed)},
        counter_{low_half(static_cast<uint64_t>(sample)), high_half(static_cast<uint64_t>(sample)),
                 low_half(static_cast<uint64_t>(epoch)), 0} {
    const uint32_t epoch_high = high_half(static_cast<uint64_t>(epoch));
    if (epoch_high == 0) return;
    const auto derived = philox4x32({epoch_high, 0, 0, 0}, key_);
    key_ = {derived[0], derived[1]};
  }
  uint64_t bits(uint32_t draw) const {
    const auto words = block(draw);
    return (uint64_t{words[0]} << 32) | words[1];
  }
  double uniform(uint32_t draw) const {  // [0, 1), 53 bits
    return static_cast<double>(bits(draw) >> 11) * 0x1p-53;
  }
  double uniform(uint32_t draw, double low, double high) const;  // [low, high)
  int64_t below(uint32_t draw, int64_t bound) const {  // [0, bound), unbiased to 2^-64 * bound
    __extension__ using uint128 = unsigned __int128;
    return static_cast<int64_t>((uint128{bits(draw)} * static_cast<uint64_t>(bound)) >> 64);
  }
  double normal(uint32_t draw) const;  // mean 0, deviation 1

 private:
  static uint32_t low_half(uint64_t value) { return static_cast<uint32_t>(value); }
  static uint32_t high_half(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
  std::array<uint32_t, 4> block(uint32_t draw) const {
    return philox4x32({counter_[0], counter_[1], counter_[2], draw}, key_);
  }

  std::array<uint32_t, 2> key_;      // the seed, and the high half of the epoch
  std::array<uint32_t, 4> counter_;  // sample, epoch's low half, and a place for the draw
};

}  // namespace stoker
