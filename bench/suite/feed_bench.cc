#include "bench/suite/feed_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

#include "bench/suite/feed_parts.h"
#include "tools/machine/energy.h"

namespace stoker {
namespace {

// The number of files whose mean size is reported.
constexpr int64_t kSampleFiles = 200;

// A row of the tables: one setting of the feeder, with a value per repeat.
struct FeedRow {
  int workers = 0, batch = 0, ring_depth = 0;
  bool parts = false;                      // whether the parts were also measured alone
  std::vector<double> cpu_ms, rate;        // the whole feeder: ms per image, images/s
  std::vector<double> read_ms, decode_ms;  // the parts: ms per image
  std::vector<double> own_ms;              // ms per image that the parts do not explain
  Energy energy{0, 0};                     // of the whole feeder, in all repeats
  double images = 0;                       // and its images
  int64_t ring_bytes = 0, scratch_bytes = 0;

  std::string name() const {
    return fmt::format("{} workers, batch {}, ring {}", workers, batch, ring_depth);
  }
};

// Returns the row with the most workers among those with parts. REQUIRES: there is one.
const FeedRow& most_workers(const std::vector<FeedRow>& rows) {
  const FeedRow* most = &rows.front();
  for (const FeedRow& row : rows) {
    if (row.parts && row.workers > most->workers) most = &row;
  }
  return *most;
}

LoaderOptions feed_loader_options(const FeedRow& row, const FeedBenchOptions& options) {
  LoaderOptions loader;
  loader.batch_size = row.batch;
  loader.epochs = -1;
  loader.feed.workers = row.workers;
  loader.feed.io_threads = options.io_threads;
  loader.ring_depth = row.ring_depth;
  loader.feed.max_bad = 1e18;
  loader.feed.decode = options.decode;
  // The parts alone have no seek index either.
  loader.feed.seek_index = "off";
  return loader;
}

// A setting under measurement.
class Lane {
 public:
  Lane(const Source& source, FeedRow row, const FeedBenchOptions& options)
      : row_(std::move(row)),
        work_{source, options.augment, feed_loader_options(row_, options)},
        loader_(work_) {
    if (row_.parts) parts_.emplace(work_);
    row_.ring_bytes = loader_.memory_plan().ring_bytes;
    row_.scratch_bytes = loader_.memory_plan().scratch_bytes;
    const double step_seconds = loader_.take(2).cpu_seconds / 2;
    steps_ = std::max<int64_t>(1, static_cast<int64_t>(1e-3 * options.cpu_ms / step_seconds));
  }

  // Repeats alternate between measuring the whole first and the parts first.
  void measure(bool parts_first, EnergyMeter& energy) {
    const Step first = loader_.first_filled();
    Spent read, decoded;
    const auto measure_parts = [&] {
      if (!parts_) return;
      read = parts_->read(first, steps_);
      decoded = parts_->read_and_decode(first, steps_);
    };
    if (parts_first) measure_parts();
    const Energy before = energy.read();
    const Spent whole = loader_.take(steps_);
    row_.energy = row_.energy + (energy.read() - before);
    if (!parts_first) measure_parts();
    const auto images = static_cast<double>(steps_ * row_.batch);
    row_.images += images;
    row_.cpu_ms.push_back(1e3 * whole.cpu_seconds / images);
    row_.rate.push_back(images / whole.wall_seconds);
    if (!parts_) return;
    row_.read_ms.push_back(1e3 * read.cpu_seconds / images);
    row_.decode_ms.push_back(1e3 * (decoded.cpu_seconds - read.cpu_seconds) / images);
    row_.own_ms.push_back(1e3 * (whole.cpu_seconds - decoded.cpu_seconds) / images);
  }

  const FeedRow& row() const { return row_; }

 private:
  FeedRow row_;
  const FeedWork work_;
  StillLoader loader_;
  std::optional<PartsAlone> parts_;
  int64_t steps_ = 1;
};

std::vector<FeedRow> feed_settings(const FeedBenchOptions& options) {
  const auto& workers = options.workers;
  const auto& batches = options.batches;
  const auto& depths = options.ring_depths;
  if (workers.empty() || batches.empty() || depths.empty() || options.repeats < 1) {
    throw std::invalid_argument("bench feed: a list is empty, or there are no repeats");
  }
  const auto row = [](int n, int batch, int depth, bool parts) {
    FeedRow setting;
    setting.workers = n;
    setting.batch = batch;
    setting.ring_depth = depth;
    setting.parts = parts;
    return setting;
  };
  const int most = *std::max_element(workers.begin(), workers.end());
  std::vector<FeedRow> settings;
  for (const int n : workers) settings.push_back(row(n, batches[0], depths[0], true));
  for (size_t i = 1; i < batches.size(); ++i) {
    settings.push_back(row(most, batches[i], depths[0], false));
  }
  for (size_t i = 1; i < depths.size(); ++i) {
    settings.push_back(row(most, batches[0], depths[i], false));
  }
  return settings;
}

nlohmann::ordered_json results_of(const Source& source, const FeedBenchOptions& options,
                                  const FeedRow& row) {
  const Summary cpu = summarise(row.cpu_ms);
  return {{"image_size", {options.augment.output.width, options.augment.output.height}},
          {"workers", row.workers},
          {"cpu_ms_per_image", cpu.median},
          {"cpu_ms_per_image_low", cpu.interval.low},
          {"cpu_ms_per_image_high", cpu.interval.high},
          {"read_ms", median(row.read_ms)},
          {"decode_ms", median(row.decode_ms)},
          {"images_per_second", median(row.rate)},
          {"mean_sample_bytes", mean_sample_bytes(source)},
          {"scratch_bytes_per_worker", row.scratch_bytes / std::max(row.workers, 1)}};
}

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

// Adds figures, tables, a plot and notes. REQUIRES: rows with parts come first, and differ only in
// workers.
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

void add_energy(const FeedRow& row, const NoEnergy& why_not, Report& report) {
  report.results["energy"] = energy_json(row.energy, why_not, row.images);
  report.notes.push_back(
      fmt::format("Energy, {}: {}.", row.name(), energy_text(row.energy, why_not, row.images)));
}

}  // namespace

double mean_sample_bytes(const Source& source) {
  const int64_t count = std::min(source.size(), kSampleFiles);
  const int64_t stride = source.size() / count;
  std::vector<uint8_t> buffer;
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::span<const uint8_t> bytes;
    if (source.read(i * stride, buffer, bytes).ok) total += static_cast<double>(bytes.size());
  }
  return total / static_cast<double>(count);
}

Report bench_feed(const Source& source, const FeedBenchOptions& options) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (const FeedRow& setting : feed_settings(options)) {
    lanes.push_back(std::make_unique<Lane>(source, setting, options));
  }
  EnergyMeter energy;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (auto& lane : lanes) lane->measure(repeat % 2 == 0, energy);
  }
  std::vector<FeedRow> rows;
  for (const auto& lane : lanes) rows.push_back(lane->row());
  Report report;
  report.bench = "feed";
  report.settings = {{"samples", source.size()},
                     {"augment", options.augment.describe()},
                     {"pixels", to_string(options.decode.pixels)},
                     {"io_threads", options.io_threads},
                     {"repeats", options.repeats},
                     {"cpu_ms", options.cpu_ms}};
  report.results = results_of(source, options, most_workers(rows));
  fill_feed_report(rows, report);
  add_energy(most_workers(rows), energy.why_not(), report);
  return report;
}

}  // namespace stoker
