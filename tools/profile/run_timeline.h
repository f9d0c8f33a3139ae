// A profiled run over time, in slices of equal length: pace, waits and who was busy. The HTML page
// draws it.
#pragma once

#include <vector>

#include "tools/profile/profiled_run.h"

namespace stoker {

struct TimelineSlice {
  double begin_s = 0, length_s = 0;  // since the run began
  Phase phase = Phase::warm_up;
  double samples_per_second = 0;
  double busy_workers = 0, busy_readers = 0;  // mean number
  double waiting_share = 0;                   // share of the consumers' time, for input and copy
  double ready_batches = 0;  // mean number of batches that are filled and not yet leased
};

// `rows`: in one device's batch.
std::vector<TimelineSlice> timeline_of(const ProfiledRun& run, int rows, int devices,
                                       double slice_s);

}  // namespace stoker
