// The bound of every memory plan: the most bytes that are alive at one step. No plan
// can be smaller.
#pragma once

#include <algorithm>
#include <span>

#include "train/graph/execution_plan.h"

namespace stoker {

inline int64_t peak_bytes(std::span<const BufferLife> buffers) {
  int64_t peak = 0;
  // A peak begins where some buffer begins.
  for (const BufferLife& moment : buffers) {
    int64_t alive = 0;
    for (const BufferLife& other : buffers) {
      const bool lives =
          other.first_step <= moment.first_step && moment.first_step <= other.last_step;
      if (!lives) continue;
      alive += (other.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    }
    peak = std::max(peak, alive);
  }
  return peak;
}

}  // namespace stoker
