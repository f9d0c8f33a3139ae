#include "bench/suite/feed_bench.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

#include "bench/suite/feed_parts.h"
#include "bench/suite/feed_table.h"

namespace stoker {
namespace {

// The number of files whose mean size is reported.
constexpr int64_t kSampleFiles = 200;

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
  void measure(bool parts_first) {
    const Step first = loader_.first_filled();
    Spent read, decoded;
    const auto measure_parts = [&] {
      if (!parts_) return;
      read = parts_->read(first, steps_);
      decoded = parts_->read_and_decode(first, steps_);
    };
    if (parts_first) measure_parts();
    const Spent whole = loader_.take(steps_);
    if (!parts_first) measure_parts();
    const auto images = static_cast<double>(steps_ * row_.batch);
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

}  // namespace

Report bench_feed(const Source& source, const FeedBenchOptions& options) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (const FeedRow& setting : feed_settings(options)) {
    lanes.push_back(std::make_unique<Lane>(source, setting, options));
  }
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (auto& lane : lanes) lane->measure(repeat % 2 == 0);
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
  return report;
}

}  // namespace stoker
