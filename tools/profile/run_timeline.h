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

// Measures when a run reached its later pace, and how much of it was not measured. A pure function
// of a ProfiledRun.
struct WarmUp {
  double seconds = 0;     // until the later pace
  int64_t steps = 0;      // until the later pace
  double left_out_s = 0;  // what the measurement left out, decided beforehand
  int64_t left_out_steps = 0;
  double first_batch_s = 0;  // until the first step had its batch
};
WarmUp measure_warm_up(const ProfiledRun& run);

}  // namespace stoker
