// How ranks divide the elements of a sum. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

// Returns the first of `count` elements that `rank` of `size` sums; those of rank `size` begin at
// the end. Shares begin at multiples of `multiple`, so that they hold whole cache lines or blocks.
inline int64_t share_begin(int64_t count, int rank, int size, int64_t multiple) {
  if (rank == size) return count;
  return std::min(count, count * rank / size / multiple * multiple);
}

}  // namespace stoker
