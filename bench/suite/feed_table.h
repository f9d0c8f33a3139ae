// Turns what bench_feed() measured into figures, tables and a plot. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/report/report.h"

namespace stoker {

// A row of the tables: one setting of the feeder, with a value per repeat.
struct FeedRow {
  int workers = 0, batch = 0, ring_depth = 0;
  bool parts = false;                      // whether the parts were also measured alone
  std::vector<double> cpu_ms, rate;        // the whole feeder: ms per image, images/s
  std::vector<double> read_ms, decode_ms;  // the parts: ms per image
  std::vector<double> own_ms;              // ms per image that the parts do not explain
  int64_t ring_bytes = 0, scratch_bytes = 0;
  std::string name() const;
};

// Returns the row with the most workers among those with parts. REQUIRES: there is one.
const FeedRow& most_workers(const std::vector<FeedRow>& rows);

// Adds figures, tables, a plot and notes. REQUIRES: rows with parts come first, and differ only in
// workers.
void fill_feed_report(const std::vector<FeedRow>& rows, Report& report);

}  // namespace stoker
