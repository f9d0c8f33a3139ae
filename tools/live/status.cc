#include "tools/live/status.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "pipeline/files/durable_file.h"
#include "pipeline/files/json_file.h"

namespace stoker {

// Conversions to and from JSON, field by field.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StageSnapshot, items, input_wait_ns, output_wait_ns, service_ns,
                                   occupancy_sum)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepReport, step, total_steps, epoch, step_in_epoch,
                                   steps_per_epoch, epochs, loss, accuracy, learning_rate,
                                   images_per_second, jitter, feed_wait_share, eta_seconds,
                                   bad_samples)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FeedPace, samples_per_second, busy_workers, busy_io_threads,
                                   sample_seconds, read_seconds, ready_batches, consumer_wait_share,
                                   ring_full_share)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFigures, index, cuda, name, busy_percent, memory_used_bytes,
                                   memory_bytes, sm_clock_mhz, sm_clock_max_mhz,
                                   pcie_to_gpu_bytes_per_second, pcie_from_gpu_bytes_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LiveStatus, run, process, unix_seconds, running_seconds, ended,
                                   workers, io_threads, ring_depth, report, read, cached_read,
                                   decode, rings, bad_samples, pace, cpu_seconds, cpu_cores,
                                   resident_bytes, metrics_port, gpus, no_gpus)

namespace {

constexpr double kSecond = 1e-9;

double per_item(double seconds, int64_t items) {
  return items > 0 ? seconds / static_cast<double>(items) : -1;
}

StageSnapshot operator-(const StageSnapshot& later, const StageSnapshot& earlier) {
  return {.items = later.items - earlier.items,
          .input_wait_ns = later.input_wait_ns - earlier.input_wait_ns,
          .output_wait_ns = later.output_wait_ns - earlier.output_wait_ns,
          .service_ns = later.service_ns - earlier.service_ns,
          .occupancy_sum = later.occupancy_sum - earlier.occupancy_sum};
}

std::string path_in(const std::string& run_folder) { return run_folder + "/" + kLiveFile; }

}  // namespace

FeedPace pace_between(const FeedSample& earlier, const FeedSample& later) {
  FeedPace pace;
  const double seconds = later.seconds - earlier.seconds;
  if (seconds <= 0) return pace;
  const StageSnapshot read = later.stats.read - earlier.stats.read;
  const StageSnapshot cached_read = later.stats.cached_read - earlier.stats.cached_read;
  const StageSnapshot decode = later.stats.decode - earlier.stats.decode;
  const double reading_s = static_cast<double>(read.service_ns) * kSecond;
  const double filling_s = static_cast<double>(decode.service_ns) * kSecond;
  pace.samples_per_second = static_cast<double>(decode.items) / seconds;
  const double cached_reading_s = static_cast<double>(cached_read.service_ns) * kSecond;
  pace.busy_workers = (cached_reading_s + filling_s) / seconds;
  pace.busy_io_threads = reading_s / seconds;
  pace.sample_seconds = per_item(filling_s, decode.items);
  pace.read_seconds = per_item(reading_s, read.items);
  const auto rings = static_cast<double>(std::max<size_t>(later.stats.rings.size(), 1));
  int64_t taken = 0, ready = 0;
  for (size_t i = 0; i < later.stats.rings.size(); ++i) {
    const StageSnapshot ring = later.stats.rings[i] - earlier.stats.rings[i];
    taken += ring.items;
    ready += ring.occupancy_sum;
    const auto share = [&](int64_t ns) {
      // A wait is counted when it ends: a long one can exceed the interval in which it ended.
      return std::min(static_cast<double>(ns) * kSecond / seconds, 1.0) / rings;
    };
    pace.consumer_wait_share += share(ring.input_wait_ns);
    pace.ring_full_share += share(ring.output_wait_ns);
  }
  pace.ready_batches = per_item(static_cast<double>(ready), taken);
  return pace;
}

LiveStatus read_live_status(const std::string& run_folder) {
  const std::string path = path_in(run_folder);
  if (!std::filesystem::exists(path)) {
    throw std::invalid_argument(path + ": there is none: " + run_folder +
                                " is not the folder of a run of `stoker train`");
  }
  return read_json_file<nlohmann::json>(
      path, [](const nlohmann::json& json) { return json.get<LiveStatus>(); });
}

void write_live_status(const std::string& run_folder, const LiveStatus& status) {
  // No flush: after a power failure nobody needs it, and it must not wait for the disk every
  // second.
  replace_file(path_in(run_folder), nlohmann::json(status).dump(1) + "\n", Flush::no);
}

}  // namespace stoker
