#include "train/graph/memory_planner.h"

#include <algorithm>
#include <numeric>

namespace stoker {
namespace {

int64_t arena_aligned(int64_t bytes) { return round_up(bytes, kArenaAlignment); }

bool lives_meet(const BufferLife& a, const BufferLife& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

struct Range {
  int64_t begin = 0, end = 0;
};

// Returns the start of the smallest gap between `taken` (sorted by begin) that fits `bytes`, or the
// end of the last range.
int64_t tightest_gap(const std::vector<Range>& taken, int64_t bytes) {
  int64_t free_from = 0, best = -1, best_bytes = 0;
  for (const Range& range : taken) {
    const int64_t gap = range.begin - free_from;
    if (gap >= bytes && (best < 0 || gap < best_bytes)) {
      best = free_from;
      best_bytes = gap;
    }
    free_from = std::max(free_from, range.end);
  }
  return best >= 0 ? best : free_from;
}

}  // namespace

BufferPlan plan_memory(std::span<const BufferLife> buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  BufferPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<size_t> placed;
  std::vector<Range> taken;
  for (const size_t index : order) {
    const int64_t bytes = arena_aligned(buffers[index].bytes);
    taken.clear();
    for (const size_t other : placed) {
      if (!lives_meet(buffers[index], buffers[other])) continue;
      taken.push_back(
          {plan.offsets[other], plan.offsets[other] + arena_aligned(buffers[other].bytes)});
    }
    std::sort(taken.begin(), taken.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    plan.offsets[index] = tightest_gap(taken, bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[index] + bytes);
    placed.push_back(index);
  }
  return plan;
}

}  // namespace stoker
