// Places buffers of known lifetimes in one arena. Two buffers share bytes only if their lifetimes
// do not overlap. Pure functions; any thread. Sizes and offsets in bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

struct BufferLife {
  int64_t bytes = 0;
  int first_step = 0;  // of the first write
  int last_step = 0;   // of the last read; inclusive, >= first_step
};

struct BufferPlan {
  std::vector<int64_t> offsets;  // per buffer, multiples of kArenaAlignment
  int64_t bytes = 0;             // of the arena
};

constexpr int64_t kArenaAlignment = 64;

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Places greedily by size: the largest buffer first, each into the smallest gap between the buffers
// that are alive at the same time.
BufferPlan plan_memory(std::span<const BufferLife> buffers);

}  // namespace stoker
