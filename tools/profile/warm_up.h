// Measures when a run reached its later pace, and how much of it was not measured. A pure function
// of a ProfiledRun.
#pragma once

#include "tools/profile/profiled_run.h"

namespace stoker {

struct WarmUp {
  double seconds = 0;     // until the later pace
  int64_t steps = 0;      // until the later pace
  double left_out_s = 0;  // what the measurement left out, decided beforehand
  int64_t left_out_steps = 0;
  double first_batch_s = 0;  // until the first step had its batch
};
WarmUp measure_warm_up(const ProfiledRun& run);

}  // namespace stoker
