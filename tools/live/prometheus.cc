#include "tools/live/prometheus.h"

#include <fmt/format.h>

namespace stoker {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

class Text {
 public:
  // Begins the metric `name`; the samples that follow belong to it.
  void begin(const std::string& name, const char* type, const char* help) {
    name_ = name;
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void sample(double value, const std::string& labels = "") {
    text_ += labels.empty() ? fmt::format("{} {}\n", name_, value)
                            : fmt::format("{}{{{}}} {}\n", name_, labels, value);
  }
  void one(const std::string& name, const char* type, const char* help, double value) {
    begin(name, type, help);
    sample(value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

void add_training(const LiveStatus& status, Text& text) {
  const StepReport& report = status.report;
  text.begin("stoker_run_info", "gauge", "Always 1; the labels say which run this is.");
  text.sample(1, fmt::format("run=\"{}\"", escaped(status.run)));
  text.one("stoker_run_seconds", "gauge", "Seconds since the run began.", status.running_seconds);
  if (report.step == 0) return;
  const auto steps = static_cast<double>(report.step);
  text.one("stoker_steps_total", "counter", "Steps done, over all epochs.", steps);
  text.one("stoker_steps_planned", "gauge", "Steps of the whole run.",
           static_cast<double>(report.total_steps));
  text.one("stoker_epoch", "gauge", "Epoch of the last step, from 0.",
           static_cast<double>(report.epoch));
  text.one("stoker_loss", "gauge", "Mean loss of the last log interval.", report.loss);
  text.one("stoker_accuracy", "gauge", "Top-1 on training samples, 0 to 1.", report.accuracy);
  text.one("stoker_learning_rate", "gauge", "Learning rate of the last step.",
           report.learning_rate);
  text.one("stoker_images_per_second", "gauge", "Global batch divided by the median step time.",
           report.images_per_second);
  text.one("stoker_feed_wait_share", "gauge",
           "Share of the step time that waits for a batch, 0 to 1.", report.feed_wait_share);
}

void add_feed(const LiveStatus& status, Text& text) {
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  text.one("stoker_files_read_total", "counter", "Samples read by I/O threads or workers.",
           static_cast<double>(status.read.items + status.cached_read.items));
  text.one("stoker_cached_files_read_total", "counter",
           "Samples that workers read from the page cache.",
           static_cast<double>(status.cached_read.items));
  text.one("stoker_read_seconds_total", "counter", "Seconds that all threads spent reading.",
           seconds(status.read.service_ns + status.cached_read.service_ns));
  text.one("stoker_rows_filled_total", "counter", "Samples decoded and augmented.",
           static_cast<double>(status.decode.items));
  text.one("stoker_fill_seconds_total", "counter",
           "Seconds that all workers spent decoding and augmenting.",
           seconds(status.decode.service_ns));
  text.one("stoker_bad_samples_total", "counter", "Samples replaced because of a bad file.",
           static_cast<double>(status.bad_samples));
  text.one("stoker_workers", "gauge", "Threads that decode.", status.workers);
  text.one("stoker_io_threads", "gauge", "Threads that read.", status.io_threads);
  text.one("stoker_ring_depth", "gauge", "Batches of a ring.", status.ring_depth);
  const auto each_ring = [&](const char* name, const char* help, auto value) {
    text.begin(name, "counter", help);
    for (size_t i = 0; i < status.rings.size(); ++i) {
      text.sample(value(status.rings[i]), fmt::format("device=\"{}\"", i));
    }
  };
  each_ring("stoker_batches_total", "Batches taken from a device's ring.",
            [](const StageSnapshot& ring) { return static_cast<double>(ring.items); });
  each_ring("stoker_ring_empty_seconds_total", "Seconds that the consumer waited for a batch.",
            [&](const StageSnapshot& ring) { return seconds(ring.input_wait_ns); });
  each_ring("stoker_ring_full_seconds_total", "Seconds that the feed waited for a free batch.",
            [&](const StageSnapshot& ring) { return seconds(ring.output_wait_ns); });
  each_ring(
      "stoker_ring_ready_batches_total",
      "Ready batches, summed over all batches taken; divided by stoker_batches_total it is the "
      "mean occupancy.",
      [](const StageSnapshot& ring) { return static_cast<double>(ring.occupancy_sum); });
}

void add_gpu_metrics(const LiveStatus& status, Text& text) {
  const auto each = [&](const char* name, const char* help, auto value) {
    text.begin(name, "gauge", help);
    for (const GpuFigures& gpu : status.gpus) {
      const auto known = static_cast<double>(value(gpu));
      if (known < 0) continue;
      text.sample(known, fmt::format("gpu=\"{}\",cuda=\"{}\",name=\"{}\"", gpu.index, gpu.cuda,
                                     escaped(gpu.name)));
    }
  };
  if (status.gpus.empty()) return;
  each("stoker_gpu_busy_percent",
       "Share of the last second (or less) in which a kernel ran, percent.",
       [](const GpuFigures& gpu) { return gpu.busy_percent; });
  each("stoker_gpu_memory_used_bytes", "Memory in use, by all processes.",
       [](const GpuFigures& gpu) { return gpu.memory_used_bytes; });
  each("stoker_gpu_memory_bytes", "The GPU's memory.",
       [](const GpuFigures& gpu) { return gpu.memory_bytes; });
  each("stoker_gpu_sm_clock_mhz", "Clock of the multiprocessors now, MHz.",
       [](const GpuFigures& gpu) { return gpu.sm_clock_mhz; });
  each("stoker_gpu_sm_clock_max_mhz", "Largest clock of the multiprocessors, MHz.",
       [](const GpuFigures& gpu) { return gpu.sm_clock_max_mhz; });
  each("stoker_gpu_pcie_to_gpu_bytes_per_second", "Bytes to the GPU, measured over 20 ms.",
       [](const GpuFigures& gpu) { return gpu.pcie_to_gpu_bytes_per_second; });
  each("stoker_gpu_pcie_from_gpu_bytes_per_second", "Bytes from the GPU, measured over 20 ms.",
       [](const GpuFigures& gpu) { return gpu.pcie_from_gpu_bytes_per_second; });
}

}  // namespace

std::string prometheus_text(const LiveStatus& status) {
  Text text;
  add_training(status, text);
  add_feed(status, text);
  text.one("process_cpu_seconds_total", "counter", "User and system.", status.cpu_seconds);
  text.one("process_resident_memory_bytes", "gauge", "Resident.",
           static_cast<double>(status.resident_bytes));
  add_gpu_metrics(status, text);
  return text.text();
}

}  // namespace stoker
