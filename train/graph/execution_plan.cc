#include "train/graph/execution_plan.h"

#include <algorithm>
#include <numeric>

namespace stoker {

void ExecutionPlan::leave_out(const std::vector<bool>& tensors, const GradientLayout& layout) {
  std::vector<bool> own(nodes.size(), false);  // a gradient of its parameters is needed
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (!tensors[t] && layout.tensors()[t].node == nodes[i].node) own[i] = true;
    }
  }
  std::vector<bool> at_or_before = own, before(nodes.size(), false);
  for (size_t i = 1; i < nodes.size(); ++i) {
    for (const int from : inputs_of(nodes[i])) before[i] = before[i] || at_or_before[from];
    at_or_before[i] = own[i] || before[i];
  }
  for (PlanStep& step : steps) {
    const bool for_inputs = step.use == StepUse::inputs || step.use == StepUse::both;
    const bool for_parameters = step.use == StepUse::parameters || step.use == StepUse::both;
    const bool own_wanted = step.tensor >= 0 ? !tensors[step.tensor] : own[step.node];
    const bool wanted = step.use == StepUse::always || (for_inputs && before[step.node]) ||
                        (for_parameters && own_wanted);
    step.left_out = !wanted;
  }
}

std::vector<BufferLife> buffer_lives(const ExecutionPlan& plan) {
  std::vector<BufferLife> lives(plan.buffer_bytes.size());
  for (size_t b = 0; b < lives.size(); ++b) lives[b] = {plan.buffer_bytes[b], -1, 0};
  if (plan.input >= 0) lives[plan.input].first_step = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (const std::vector<int>* named : {&plan.steps[s].reads, &plan.steps[s].writes}) {
      for (const int buffer : *named) {
        BufferLife& life = lives[buffer];
        if (life.first_step < 0) life.first_step = static_cast<int>(s);
        life.last_step = static_cast<int>(s);
      }
    }
  }
  return lives;
}

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
