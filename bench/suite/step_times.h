// The moments at which the steps of a run ended, and what follows from them. A value; pure.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

struct StepWarmUp {
  int64_t steps = 0;   // before the first step of the usual length
  double seconds = 0;  // from the run's begin to that step's
};

// Steps differ by less than this from their median once a run is warm.
inline constexpr double kWarmFactor = 1.1;
inline constexpr int kWarmSteps = 3;  // in a row

// `ends` are seconds since the run's begin, ascending. A run is warm at the first step from which
// kWarmSteps in a row (or all that are left) take at most kWarmFactor times the median of the
// second half of its steps. If there is none, it never was: all of its steps count. REQUIRES: at
// least two steps.
StepWarmUp warm_up_of(std::span<const double> ends);

}  // namespace stoker
