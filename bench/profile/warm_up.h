// When a run reached its later pace. A pure function of a ProfiledRun.
#pragma once

#include "bench/profile/profiled_run.h"

namespace stoker {

struct WarmUp {
  double seconds = 0;
  int64_t steps = 0;
  double first_batch_s = 0;  // until the first step had its batch
};
WarmUp measure_warm_up(const ProfiledRun& run);

}  // namespace stoker
