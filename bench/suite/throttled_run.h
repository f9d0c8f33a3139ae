// Runs steps of data-parallel training on throttled devices: batches from real rings through real
// stagers, computing that is a sleep, and gradients that are summed while the rest of the backward
// pass "runs": through the host's memory by the trainer's own collective, or by a ring of copies
// (device_ring.h). Threads: one per device, and each device's feed; run_throttled() blocks.
#pragma once

#include <vector>

#include "bench/suite/link_machine.h"
#include "bench/suite/schedule_simulation.h"
#include "staging/batch_layout.h"

namespace stoker {

// The measurements, as SchedulePrediction says it.
struct ThrottledResult {
  double images_per_second = 0;
  double gap_seconds = 0;
  std::vector<LinkLoad> links;  // bytes per step; `busy` is not measured
};

// Runs options.warmup and then options.steps steps on the machine's first GPUs. `shape` is that of
// each device's own part of the batch. REQUIRES: what predict_schedule() requires; options.reduce
// is nccl (a ring of copies), host or none, options.wire fp32, options.slice host or each_device.
ThrottledResult run_throttled(const LinkMachine& machine, const TrainingWork& work,
                              const BatchShape& shape, const ScheduleOptions& options);

}  // namespace stoker
