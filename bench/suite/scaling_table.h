// Turns what bench_scaling() measured into the usual tables and plots of scaling. Pure functions;
// any thread.
#pragma once

#include <string>
#include <vector>

#include "bench/suite/scaling_bench.h"

namespace stoker {

struct ScalingRow {
  bool weak = true;
  std::string model;
  int64_t parameters = 0;
  Size size;
  int64_t samples = 0;
  FeedKind feed = FeedKind::synthetic;
  ReduceKind reduction = ReduceKind::automatic;
  GradWire wire = GradWire::fp32;
  int devices = 1;
  int global_batch = 0;
  Traffic traffic{};                                 // of a replica in a step
  std::vector<double> rate;                          // images/s, per repeat
  std::vector<double> cpu_ms;                        // per image, per repeat
  std::vector<double> warmup_steps, warmup_seconds;  // per repeat
};

// Adds figures, tables, results and plots: a plot of speed-ups for each mode, and one against the
// model, the image size, the data set's size and the feed, where there are several of them.
// REQUIRES: rows that differ only in devices follow each other; the first of them has the fewest.
void fill_scaling_report(const std::vector<ScalingRow>& rows, Report& report);

}  // namespace stoker
