// Counter-based randomness: every number is a pure function of (seed, epoch, sample, draw). No
// state, no thread-local generator: any thread gets the same numbers in any order. Algorithm:
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
// Different (seed, epoch, sample, draw) are different inputs of the block function, so nothing
// aliases and neighbouring seeds are independent. Sample -1 is the Sampler's, for the order of an
// epoch.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

// One block of Philox4x32 with 10 rounds.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class RandomKey {
 public:
  RandomKey(uint64_t seed, int64_t epoch, int64_t sample);
  uint64_t bits(uint32_t draw) const;
  double uniform(uint32_t draw) const;                           // [0, 1), 53 bits
  double uniform(uint32_t draw, double low, double high) const;  // [low, high)
  int64_t below(uint32_t draw, int64_t bound) const;  // [0, bound), unbiased to 2^-64 * bound
  double normal(uint32_t draw) const;                 // mean 0, deviation 1

 private:
  std::array<uint32_t, 4> block(uint32_t draw) const;

  std::array<uint32_t, 2> key_;      // the seed, and the high half of the epoch
  std::array<uint32_t, 4> counter_;  // sample, epoch's low half, and room for the draw
};

}  // namespace stoker
