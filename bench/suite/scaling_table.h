// Turns what bench_scaling() measured into the usual tables and plots of scaling: when a run was
// warm, speed-up, efficiency. Pure functions; any thread.
#pragma once

#include <span>
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

struct StepWarmUp {
  int64_t steps = 0;   // before the first step of the usual length
  double seconds = 0;  // from the run's begin to that step's
};

// Steps differ by less than this from their median once a run is warm.
inline constexpr double kWarmFactor = 1.1;
inline constexpr int kWarmSteps = 3;  // in a row

// `ends` are seconds since the run's begin, ascending. A run is warm at the first step from which
// kWarmSteps in a row (or all that are left) take at most kWarmFactor times the median of the
// second half of its steps. If there is none, it never was: all of its steps count. REQUIRES: at
// least two steps.
StepWarmUp warm_up_of(std::span<const double> ends);

// Returns "all-reduce:nccl, bf16"; fp32 is left out.
inline std::string strategy_name(ReduceKind reduction, GradWire wire) {
  std::string text = to_string(reduction);
  if (wire != GradWire::fp32) text += std::string(", ") + to_string(wire);
  return text;
}

}  // namespace stoker
