// What k = 0 to 3 staging slots bring: the idle gap between two steps on the compute stream,
// images/s, and the host's cost per batch. Steps are a model's, or emulated ones of a given length.
//
// The feed is always ahead (slabs are committed as they are), so staging alone causes the gaps.
// They are measured by timing events around each step; the first event is recorded behind the wait
// for the batch. On a host device copies are the host's work, and with 0 slots there are none.
#pragma once

#include <string>

#include "bench/report/report.h"

namespace stoker {

struct DepthOptions {
  std::string device = "cpu:0";
  int rows = 2048;
  int size = 32;
  int steps = 30;  // of one repeat, after a few that do not count
  int repeats = 5;
  double step_ms = 10;  // of an emulated step
  std::string model;    // "": the steps are emulated
};

// report.results: {device, rows, size, step, host_copies_are_host_work, depths: [{slots,
// gap_ms_median, gap_ms_max, images_per_second, step_ms, host_us_per_batch, next_us_median}]}.
Report bench_depth(const DepthOptions& options);

}  // namespace stoker
