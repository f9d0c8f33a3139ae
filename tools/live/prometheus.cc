#include <fmt/format.h>

#include "tools/live/status.h"

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
  void begin(const std::string& name, const char* help) {
    name_ = name;
    const char* type = name.ends_with("_total") ? "counter" : "gauge";
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void sample(double value, const std::string& labels = "") {
    text_ += labels.empty() ? fmt::format("{} {}\n", name_, value)
                            : fmt::format("{}{{{}}} {}\n", name_, labels, value);
  }
  template <class Number>
  void one(const std::string& name, const char* help, Number value) {
    begin(name, help);
    sample(static_cast<double>(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

void add_training(const LiveStatus& status, Text& text) {
  const StepReport& report = status.report;
  text.begin("stoker_run_info", "Always 1; the labels say which run this is.");
  text.sample(1, fmt::format("run=\"{}\"", escaped(status.run)));
  text.one("stoker_run_seconds", "Seconds since the run began.", status.running_seconds);
  if (report.step == 0) return;
  text.one("stoker_steps_total", "Steps done, over all epochs.", report.step);
  text.one("stoker_steps_planned", "Steps of the whole run.", report.total_steps);
  text.one("stoker_epoch", "Epoch of the last step, from 0.", report.epoch);
  text.one("stoker_loss", "Mean loss of the last log interval.", report.loss);
  text.one("stoker_accuracy", "Top-1 on training samples, 0 to 1.", report.accuracy);
  text.one("stoker_learning_rate", "Learning rate of the last step.", report.learning_rate);
  text.one("stoker_images_per_second", "Global batch divided by the median step time.",
           report.images_per_second);
  text.one("stoker_feed_wait_share", "Share of the step time that waits for a batch, 0 to 1.",
           report.feed_wait_share);
}

void add_feed(const LiveStatus& status, Text& text) {
  constexpr double kNanoseconds = 1e-9;
  const StageSnapshot &read = status.read, &cached = status.cached_read;
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) * kNanoseconds; };
  text.one("stoker_files_read_total", "Samples read by I/O threads or workers.",
           read.items + cached.items);
  text.one("stoker_cached_files_read_total", "Samples that workers read from the page cache.",
           cached.items);
  text.one("stoker_read_seconds_total", "Seconds that all threads spent reading.",
           seconds(read.service_ns + cached.service_ns));
  text.one("stoker_rows_filled_total", "Samples decoded and augmented.", status.decode.items);
  text.one("stoker_fill_seconds_total", "Seconds that all workers spent decoding and augmenting.",
           seconds(status.decode.service_ns));
  text.one("stoker_bad_samples_total", "Samples replaced because of a bad file.",
           status.bad_samples);
  text.one("stoker_workers", "Threads that decode.", status.workers);
  text.one("stoker_io_threads", "Threads that read.", status.io_threads);
  text.one("stoker_ring_depth", "Batches of a ring.", status.ring_depth);
  const auto each_ring = [&](const char* name, int64_t StageSnapshot::*figure, double unit,
                             const char* help) {
    text.begin(name, help);
    for (size_t i = 0; i < status.rings.size(); ++i) {
      text.sample(unit * static_cast<double>(status.rings[i].*figure),
                  fmt::format("device=\"{}\"", i));
    }
  };
  each_ring("stoker_batches_total", &StageSnapshot::items, 1,
            "Batches taken from a device's ring.");
  each_ring("stoker_ring_empty_seconds_total", &StageSnapshot::input_wait_ns, kNanoseconds,
            "Seconds that the consumer waited for a batch.");
  each_ring("stoker_ring_full_seconds_total", &StageSnapshot::output_wait_ns, kNanoseconds,
            "Seconds that the feed waited for a free batch.");
  each_ring("stoker_ring_ready_batches_total", &StageSnapshot::occupancy_sum, 1,
            "Ready batches, summed over all batches taken; divided by stoker_batches_total it is "
            "the mean occupancy.");
}

void add_gpu_metrics(const LiveStatus& status, Text& text) {
  const auto each = [&](const char* name, auto figure, const char* help) {
    text.begin(name, help);
    for (const GpuFigures& gpu : status.gpus) {
      const auto known = static_cast<double>(gpu.*figure);
      if (known < 0) continue;
      text.sample(known, fmt::format("gpu=\"{}\",cuda=\"{}\",name=\"{}\"", gpu.index, gpu.cuda,
                                     escaped(gpu.name)));
    }
  };
  if (status.gpus.empty()) return;
  each("stoker_gpu_busy_percent", &GpuFigures::busy_percent,
       "Share of the last second (or less) in which a kernel ran, percent.");
  each("stoker_gpu_memory_used_bytes", &GpuFigures::memory_used_bytes,
       "Memory in use, by all processes.");
  each("stoker_gpu_memory_bytes", &GpuFigures::memory_bytes, "The GPU's memory.");
  each("stoker_gpu_sm_clock_mhz", &GpuFigures::sm_clock_mhz,
       "Clock of the multiprocessors now, MHz.");
  each("stoker_gpu_sm_clock_max_mhz", &GpuFigures::sm_clock_max_mhz,
       "Largest clock of the multiprocessors, MHz.");
  each("stoker_gpu_pcie_to_gpu_bytes_per_second", &GpuFigures::pcie_to_gpu_bytes_per_second,
       "Bytes to the GPU, measured over 20 ms.");
  each("stoker_gpu_pcie_from_gpu_bytes_per_second", &GpuFigures::pcie_from_gpu_bytes_per_second,
       "Bytes from the GPU, measured over 20 ms.");
}

}  // namespace

std::string prometheus_text(const LiveStatus& status) {
  Text text;
  add_training(status, text);
  add_feed(status, text);
  text.one("process_cpu_seconds_total", "User and system.", status.cpu_seconds);
  text.one("process_resident_memory_bytes", "Resident.", status.resident_bytes);
  add_gpu_metrics(status, text);
  return text.text();
}

}  // namespace stoker
