// Measures steps on host devices with throttled links beside what plan's simulation predicts for
// them: over devices, with gradients that are summed by a ring, through the host's memory or not at
// all; with 0 to 3 staging slots; and with the whole batch on every device.
//
// Real are rings of slabs, stagers, streams, events, copies, threads and the collective of
// train/collective/staged.cc. Computing is a sleep, and a link's bandwidth is a sleep as well
// (throttled_device.h). NCCL does not run on such devices: a ring of copies with its algorithm does
// (throttled_run.h). A parameter server is not measured.
// Errors: std::invalid_argument with the numbers.
#pragma once

#include <vector>

#include "bench/report/report.h"
#include "bench/suite/link_machine.h"

namespace stoker {

struct PredictOptions {
  LinkMachine machine;
  std::vector<int> counts = {1};  // of devices; the slots and the cut are measured with the last
  int rows = 64;                  // of each device
  int size = 128;                 // pixels of a side
  double step_ms = 40;            // of computing
  double grad_mib = 8;            // fp32
  double bucket_mib = 2;          // 0: summed after the backward pass
  int steps = 20;                 // of a repeat, after some that do not count
  int repeats = 5;
};

// report.results: {machine, settings: [{devices, slots, reduction, slice, images_per_second,
// predicted_images_per_second, difference, gap_ms, predicted_gap_ms}], largest_difference}; a
// difference is (measured - predicted) / predicted images/s.
Report bench_predict(const PredictOptions& options);

}  // namespace stoker
