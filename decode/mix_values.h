// Weighted means of two rows of pixels. Stateless functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

// Weights of mix_values() are whole numbers of this many parts, so that the bytes are exact.
inline constexpr int kMixParts = 1 << 15;

// Sets each of `count` values to (share * own + (kMixParts - share) * other + kMixParts / 2) /
// kMixParts, where `share` is 0 to kMixParts and the division drops the remainder. REQUIRES: no
// overlap.
void mix_values(int share, const uint8_t* other, size_t count, uint8_t* own);

// The same for two rows that are mixed into each other, each from the other's values as they were.
// It reads and writes them once. Each has the share of its own values. REQUIRES: no overlap.
void mix_each_other(int first_share, uint8_t* first, int second_share, uint8_t* second,
                    size_t count);

}  // namespace stoker
