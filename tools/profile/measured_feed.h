// The cost of an image in a feed at full speed: profiled against one emulated device that takes
// batches as they come. `stoker plan` starts from it, so that it has the profiler's model. Blocks
// for the warm-up and about the given seconds. Throws what Loader throws, and std::runtime_error if
// too little was measured.
#pragma once

#include "tools/profile/emulated.h"

namespace stoker {

struct MeasuredFeed {
  FeedShape shape;
  RunMeasurements measured;
  // CPU time of the whole process for an image, ms: of all, and the least and most of the phases.
  double cpu_ms = 0, cpu_ms_low = 0, cpu_ms_high = 0;
  int64_t worker_bytes = 0;  // MemoryPlan::scratch_bytes, per worker

  FeedWhatIf model() const { return FeedWhatIf(shape, measured, -1); }
};

// `options` are the feed's; its number of workers must be known and above 0.
MeasuredFeed measure_full_feed(const Source& source, const AugmentSpec& augment,
                               const LoaderOptions& options, double seconds);

}  // namespace stoker
