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
  ReduceKind reduction = ReduceKind::automatic;
  GradWire wire = GradWire::fp32;
  int devices = 1;
  int global_batch = 0;
  Traffic traffic{};           // of a replica in a step
  std::vector<double> rate;    // images/s, per repeat
  std::vector<double> cpu_ms;  // per image, per repeat
};

// Adds figures, tables, results and plots. REQUIRES: rows of one mode, model and reduction follow
// each other; the first of them has the fewest devices.
void fill_scaling_report(const std::vector<ScalingRow>& rows, Report& report);

}  // namespace stoker
