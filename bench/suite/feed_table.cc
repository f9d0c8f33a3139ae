#include "bench/suite/feed_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker {
namespace {

void add_figures(const FeedRow& row, Report& report) {
  const std::string name = row.name();
  report.add({"CPU per image, " + name, "ms", Better::lower, row.cpu_ms});
  report.add({"rate, " + name, "images/s", Better::higher, row.rate});
  if (!row.parts) return;
  report.add({"CPU of reading, " + name, "ms", Better::lower, row.read_ms});
  report.add({"CPU of decode and augment, " + name, "ms", Better::lower, row.decode_ms});
  report.add({"CPU of the feeder itself, " + name, "ms", Better::neither, row.own_ms});
}

Table stage_table(const FeedRow& row) {
  Table table{"By stage, " + row.name(), {"stage", "CPU ms per image", "share"}, {}};
  const double whole = median(row.cpu_ms);
  const auto add = [&](const char* stage, const std::vector<double>& values) {
    table.rows.push_back({stage, with_interval(summarise(values)),
                          fmt::format("{:.1f} %", 100 * median(values) / whole)});
  };
  add("read", row.read_ms);
  add("decode and augment", row.decode_ms);
  add("the feeder itself", row.own_ms);
  add("whole", row.cpu_ms);
  return table;
}

// Adds images/s by number of workers, and that number times the rate of one worker for comparison.
void add_worker_scaling(const std::vector<FeedRow>& rows, Report& report) {
  Table table{
      "By workers", {"workers", "images/s", "speed-up", "efficiency", "CPU ms per image"}, {}};
  PlotSeries measured{"measured", {}}, ideal{"ideal", {}, true};
  const double base = median(rows.front().rate) / std::max(rows.front().workers, 1);
  for (const FeedRow& row : rows) {
    if (!row.parts) continue;
    const Summary rate = summarise(row.rate);
    // Without workers the consumer is the one thread that decodes.
    const int threads = std::max(row.workers, 1);
    table.rows.push_back({std::to_string(row.workers), with_interval(rate),
                          fmt::format("{:.2f}x", rate.median / base),
                          fmt::format("{:.1f} %", 100 * rate.median / base / threads),
                          with_interval(summarise(row.cpu_ms))});
    const auto x = static_cast<double>(row.workers);
    measured.points.push_back({x, rate.median, rate.interval.low, rate.interval.high});
    ideal.points.push_back({x, base * threads, 0, 0});
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back({"feed_scaling",
                          "Images per second, by workers",
                          "workers",
                          "images/s",
                          {std::move(measured), std::move(ideal)},
                          {}});
}

// Adds a table of the rows that differ from most_workers() only in `field`.
void add_sweep(const std::vector<FeedRow>& rows, const char* what, int FeedRow::*field,
               Report& report) {
  FeedRow like = most_workers(rows);
  std::vector<const FeedRow*> chosen;
  for (const FeedRow& row : rows) {
    like.*field = row.*field;
    if (row.name() == like.name()) chosen.push_back(&row);
  }
  if (chosen.size() < 2) return;
  std::sort(chosen.begin(), chosen.end(),
            [&](const FeedRow* a, const FeedRow* b) { return a->*field < b->*field; });
  Table table{fmt::format("By {}, {} workers", what, like.workers),
              {what, "images/s", "CPU ms per image", "ring MiB"},
              {}};
  for (const FeedRow* row : chosen) {
    table.rows.push_back({std::to_string(row->*field), with_interval(summarise(row->rate)),
                          with_interval(summarise(row->cpu_ms)),
                          significant(static_cast<double>(row->ring_bytes) / (1 << 20))});
  }
  report.tables.push_back(std::move(table));
}

}  // namespace

std::string FeedRow::name() const {
  return fmt::format("{} workers, batch {}, ring {}", workers, batch, ring_depth);
}

const FeedRow& most_workers(const std::vector<FeedRow>& rows) {
  const FeedRow* most = &rows.front();
  for (const FeedRow& row : rows) {
    if (row.parts && row.workers > most->workers) most = &row;
  }
  return *most;
}

void fill_feed_report(const std::vector<FeedRow>& rows, Report& report) {
  for (const FeedRow& row : rows) add_figures(row, report);
  report.tables.push_back(stage_table(most_workers(rows)));
  add_worker_scaling(rows, report);
  add_sweep(rows, "batch", &FeedRow::batch, report);
  add_sweep(rows, "ring depth", &FeedRow::ring_depth, report);
  report.notes = {
      "The feeder itself is what reading, decoding and augmenting alone do not explain: a "
      "difference of two measurements, as noisy as both.",
      "Images/s are wall time and depend on what else the machine does; CPU time hardly does."};
}

}  // namespace stoker
