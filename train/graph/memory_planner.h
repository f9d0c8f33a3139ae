// Places buffers of known lifetimes in one arena, so that two share bytes only if they are never
// alive together. Pure functions; any thread. Sizes and offsets in bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

struct BufferLife {
  int64_t bytes = 0;
  int first_step = 0;  // written
  int last_step = 0;   // read for the last time; inclusive, >= first_step
};

struct BufferPlan {
  std::vector<int64_t> offsets;  // per buffer, multiples of kArenaAlignment
  int64_t bytes = 0;             // of the arena
};

constexpr int64_t kArenaAlignment = 64;

// Greedy by size: the largest first, each into the tightest gap that its contemporaries leave.
BufferPlan plan_memory(std::span<const BufferLife> buffers);

}  // namespace stoker
