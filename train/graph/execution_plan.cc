#include "train/graph/execution_plan.h"

#include <algorithm>

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

}  // namespace stoker
