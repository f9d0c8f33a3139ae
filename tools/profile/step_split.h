// Where the time of a step goes, from its spans. Seconds. Pure functions.
#pragma once

#include <array>
#include <map>
#include <utility>

#include "tools/profile/profiled_run.h"

namespace stoker {

// Where a step's time goes: means over steps and devices. The parts add up to the step.
struct StepSplit {
  double step = 0;
  double compute = 0;
  double input_wait = 0;     // for a batch
  double copy_wait = 0;      // for the copy of its pixels
  double gradient_wait = 0;  // for other replicas and the sum; -1: unknown, it is on the device
  double launch_wait = 0;    // the device had its batch and was idle, because the host was late
  double update = 0;
  double other = 0;
  double waiting_share() const { return step > 0 ? (input_wait + copy_wait) / step : 0; }
};

// The spans of one step of one device, for the kinds of which a step has one; null: there is none.
struct StepSpans {
  std::array<const Span*, kSpanKinds> of{};
  const Span* operator[](SpanKind kind) const { return of[static_cast<int>(kind)]; }
  double length(SpanKind kind) const;
};
using StepTable = std::map<std::pair<int, Step>, StepSpans>;  // by device and step

// Returns pointers into `run`.
StepTable step_table(const ProfiledRun& run);

struct StepParts {
  StepSplit split;
  double hold = 0;  // while the batch is held, without the wait for its copy
  double rest = 0;  // the rest of the step, without the waits
};

// Splits one step, from the end of `last`, the step before it, to its own end. `apart` seconds of
// that lie between the steps and belong to neither. If the device's work is queued and done later,
// this splits the device's time, otherwise the host's.
StepParts split_step(const StepSpans& last, const StepSpans& step, double apart);

double seconds_of(const Span& span);
// Returns how much of [begin, end) lies inside `span`; 0 if it is null.
double overlap_seconds(int64_t begin_ns, int64_t end_ns, const Span* span);

}  // namespace stoker
