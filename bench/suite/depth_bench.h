// Measures what k = 0 to 3 staging slots bring: the idle gap between two steps on the compute
// stream, images/s, and the host's cost per batch. The steps are those of a model, or emulated
// steps of a given length.
//
// The feed is always ahead, because slabs are committed without decoding, so staging alone causes
// the gaps. Timing events around each step measure them; the first event is recorded after the wait
// for the batch. On a host device the host makes the copies, and with 0 slots there are none; with
// throttled links it shows what slots hide.
#pragma once

#include <string>

#include "bench/report/report.h"
#include "bench/suite/link_machine.h"

namespace stoker {

struct DepthOptions {
  std::string device = "cpu:0";
  // If it has GPUs, `device` is not used: a host device is, with the links of the first of them
  // throttled. It copies batches to its slots as a GPU does.
  LinkMachine machine;
  int rows = 2048;
  int size = 32;
  int steps = 30;  // per repeat, after a few for warm-up
  int repeats = 5;
  double step_ms = 10;  // of an emulated step
  std::string model;    // "": the steps are emulated
};

// report.results: {device, batch, size, step, host_copies_are_host_work, depths: [{slots,
// gap_ms_median, gap_ms_max, images_per_second, step_ms, host_us_per_batch, next_us_median}]}.
Report bench_depth(const DepthOptions& options);

}  // namespace stoker
