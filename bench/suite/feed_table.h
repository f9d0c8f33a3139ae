// What bench_feed() measured, as figures, tables and a plot. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/report/report.h"

namespace stoker {

// One setting of the feeder; a value per repeat.
struct FeedRow {
  int workers = 0, batch = 0, ring_depth = 0;
  bool parts = false;                      // were its parts measured alone too?
  std::vector<double> cpu_ms, rate;        // of the whole feeder: ms per image, images/s
  std::vector<double> read_ms, decode_ms;  // of its parts, per image
  std::vector<double> own_ms;              // what the parts do not explain
  int64_t ring_bytes = 0, scratch_bytes = 0;
  std::string name() const;
};

// The row with parts of the most workers. REQUIRES: there is one.
const FeedRow& most_workers(const std::vector<FeedRow>& rows);

// REQUIRES: rows with parts come first, and differ in workers only.
void fill_feed_report(const std::vector<FeedRow>& rows, Report& report);

}  // namespace stoker
