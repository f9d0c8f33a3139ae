// Which values dropout keeps: a pure function of a key, the place of the sample in the run, and the
// element within the sample, so that the result does not depend on batches, replicas or threads.
// The bits are those of SplitMix64 (Steele, Lea, Flood 2014), which can start anywhere. The same
// code for GPUs and CPUs; any thread.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define STOKER_DROPOUT_INLINE __host__ __device__ inline
#else
#define STOKER_DROPOUT_INLINE inline
#endif

namespace stoker {

STOKER_DROPOUT_INLINE uint64_t dropout_mixed(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// `node` is the index of the dropout in its NetSpec.
STOKER_DROPOUT_INLINE uint64_t dropout_key(uint64_t seed, int node) {
  return dropout_mixed(seed, static_cast<uint64_t>(node));
}

// `position` counts the rows of the run, over all epochs and replicas.
STOKER_DROPOUT_INLINE uint64_t dropout_row_key(uint64_t key, int64_t position) {
  return dropout_mixed(key, static_cast<uint64_t>(position));
}

// Returns the factor of a value: 0, or 1 / (1 - rate). `element` is its place in (C, H, W) order.
STOKER_DROPOUT_INLINE float dropout_factor(uint64_t row_key, int64_t element, float rate) {
  const auto bits =
      static_cast<uint32_t>(dropout_mixed(row_key, static_cast<uint64_t>(element)) >> 40);
  return static_cast<float>(bits) * 0x1.0p-24f < rate ? 0.0f : 1.0f / (1.0f - rate);
}

}  // namespace stoker
