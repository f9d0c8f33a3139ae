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
  bool parts = false;                      // were the parts measured alone, too?
  std::vector<double> cpu_ms, rate;        // the whole feeder: ms per image, images/s
  std::vector<double> read_ms, decode_ms;  // the parts: ms per image
  std::vector<double> own_ms;              // ms per image that the parts do not explain
  int64_t ring_bytes = 0, scratch_bytes = 0;
  std::string name() const;
};

// Of the rows with parts, the one with the most workers. REQUIRES: there is one.
const FeedRow& most_workers(const std::vector<FeedRow>& rows);

// REQUIRES: rows with parts come first, and differ only in workers.
void fill_feed_report(const std::vector<FeedRow>& rows, Report& report);

}  // namespace stoker
