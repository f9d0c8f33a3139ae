// The learning rate over a run, as a factor of the peak rate: a pure function of the step. A value.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

enum class ScheduleKind : uint8_t {
  constant,  // 1
  step,      // times `gamma` at each milestone
  cosine,    // 1 -> `end`, half a cosine from the end of the warm-up to the end of the run
  triangle,  // one cycle: `start` -> 1 at `peak`, then linearly -> `end` (airbench94)
};

struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::constant;
  double start = 0.2;              // triangle: factor of step 0
  double peak = 0.23;              // triangle: where it is 1, as a share of the run
  double end = 0.0;                // triangle, cosine: factor at the end of the run
  std::vector<double> milestones;  // step: shares of the run, ascending, in (0, 1); at least one
  double gamma = 0.1;              // step
  // Linear warm-up, per iteration, over the first `warmup_epochs` (may be fractional): step s of
  // its W steps has the factor warmup_start + (1 - warmup_start) * (s + 1) / W. Not allowed with
  // `triangle`, which has its own warm-up.
  double warmup_epochs = 0;
  double warmup_start = 0;
  int64_t warmup_steps = 0;  // W itself, instead of warmup_epochs, which must be 0 then

  // Throws std::invalid_argument naming the field and its value.
  void validate() const;
  std::string describe() const;  // one line
};

// Returns the factor of `step` (0-based). REQUIRES: 0 <= step < total_steps.
double schedule_factor(const ScheduleSpec& spec, int64_t step, int64_t total_steps,
                       int64_t steps_per_epoch);

}  // namespace stoker
