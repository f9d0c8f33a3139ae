#include "tools/live/view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "tools/console/progress.h"

namespace stoker {
namespace {

constexpr double kLineSeconds = 5;  // between two lines where there is no terminal
constexpr int kBarCells = 20;

std::string bar(double share) {
  const int cells = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarCells + 0.5);
  return fmt::format("[{:{}}]", std::string(static_cast<size_t>(cells), '#'), kBarCells);
}

std::string milliseconds_if_known(double seconds) {
  return seconds < 0 ? "-" : fmt::format("{:.2f} ms", 1e3 * seconds);
}

std::string gib(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
}

void add_gpu_lines(const LiveStatus& status, std::vector<std::string>& lines) {
  for (const GpuFigures& gpu : status.gpus) {
    const auto known = [](int64_t value, const std::string& text) {
      return value < 0 ? std::string("-") : text;
    };
    lines.push_back(fmt::format(
        "{:<9} {} busy {}, memory {} of {}, {} of {} MHz, PCIe {} in, {} out",
        gpu.cuda.empty() ? fmt::format("GPU {}", gpu.index) : gpu.cuda,
        bar(gpu.busy_percent / 100.0),
        known(gpu.busy_percent, fmt::format("{}%", gpu.busy_percent)),
        known(gpu.memory_used_bytes, gib(gpu.memory_used_bytes)),
        known(gpu.memory_bytes, gib(gpu.memory_bytes)),
        known(gpu.sm_clock_mhz, std::to_string(gpu.sm_clock_mhz)),
        known(gpu.sm_clock_max_mhz, std::to_string(gpu.sm_clock_max_mhz)),
        known(gpu.pcie_to_gpu_bytes_per_second, gib(gpu.pcie_to_gpu_bytes_per_second) + "/s"),
        known(gpu.pcie_from_gpu_bytes_per_second, gib(gpu.pcie_from_gpu_bytes_per_second) + "/s")));
  }
  if (status.gpus.empty()) lines.push_back(fmt::format("{:<9} {}", "GPUs", status.no_gpus));
}

double epochs_done(const StepReport& report) {
  if (report.steps_per_epoch <= 0) return 0;
  return static_cast<double>(report.epoch) +
         static_cast<double>(report.step_in_epoch) / static_cast<double>(report.steps_per_epoch);
}

}  // namespace

std::vector<std::string> live_lines(const LiveStatus& status) {
  const StepReport& report = status.report;
  const FeedPace& pace = status.pace;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}, process {}, {} {}", status.run, status.process,
                              format_duration(status.running_seconds),
                              status.ended ? "(ended)" : "running"));
  if (report.step > 0) {
    const double done = static_cast<double>(report.step) / static_cast<double>(report.total_steps);
    lines.push_back(fmt::format("{:<9} {} step {} of {}, epoch {:.2f} of {:g}, ETA {}", "progress",
                                bar(done), report.step, report.total_steps, epochs_done(report),
                                report.epochs, format_duration(report.eta_seconds)));
    lines.push_back(fmt::format("{:<9} loss {:.4f}, accuracy {:.2f}%, learning rate {:.3g}",
                                "training", report.loss, 100 * report.accuracy,
                                report.learning_rate));
    lines.push_back(fmt::format("{:<9} {} images/s ± {}, waiting {:.1f}% of a step for its batch",
                                "speed", format_count(report.images_per_second),
                                format_count(report.jitter), 100 * report.feed_wait_share));
  } else {
    lines.push_back("progress  no step yet");
  }
  const double workers = std::max(status.workers, 1), depth = std::max(status.ring_depth, 1);
  lines.push_back(fmt::format("{:<9} {} {:.2f} of {} busy, {} a sample, {} samples/s", "workers",
                              bar(pace.busy_workers / workers), pace.busy_workers, status.workers,
                              milliseconds_if_known(pace.sample_seconds),
                              format_count(pace.samples_per_second)));
  if (pace.read_seconds >= 0) {
    lines.push_back(fmt::format("{:<9} {} {:.2f} of {} busy, {} a file", "I/O",
                                bar(pace.busy_io_threads / std::max(status.io_threads, 1)),
                                pace.busy_io_threads, status.io_threads,
                                milliseconds_if_known(pace.read_seconds)));
  }
  const double ready = std::max(pace.ready_batches, 0.0);
  lines.push_back(fmt::format(
      "{:<9} {} {} of {} batches ready; empty {:.1f}% of the time, full {:.1f}%", "ring",
      bar(ready / depth), pace.ready_batches < 0 ? "-" : fmt::format("{:.1f}", ready),
      status.ring_depth, 100 * pace.consumer_wait_share, 100 * pace.ring_full_share));
  lines.push_back(fmt::format("{:<9} {:.2f} cores, {} of memory, {} bad sample{}", "process",
                              status.cpu_cores, gib(status.resident_bytes), status.bad_samples,
                              status.bad_samples == 1 ? "" : "s"));
  add_gpu_lines(status, lines);
  return lines;
}

std::string live_line(const LiveStatus& status) {
  const StepReport& report = status.report;
  return fmt::format(
      "step {}/{}  loss {:.4f}  {} images/s  waiting {:.1f}%  workers {:.2f}/{}  ring {}/{}  cores "
      "{:.2f}{}",
      report.step, report.total_steps, report.loss, format_count(report.images_per_second),
      100 * report.feed_wait_share, status.pace.busy_workers, status.workers,
      status.pace.ready_batches < 0 ? "-" : fmt::format("{:.1f}", status.pace.ready_batches),
      status.ring_depth, status.cpu_cores, status.ended ? "  (ended)" : "");
}

LiveView::LiveView(FILE* out) : out_(out), terminal_(isatty(fileno(out)) == 1) {}
LiveView::~LiveView() { std::fflush(out_); }

void LiveView::erase() {
  if (drawn_ > 0) std::fprintf(out_, "\033[%dA\033[J", drawn_);
  drawn_ = 0;
}

void LiveView::show(const LiveStatus& status) {
  if (!terminal_) {
    if (status.running_seconds < next_line_ && !status.ended) return;
    next_line_ = status.running_seconds + kLineSeconds;
    std::fprintf(out_, "%s\n", live_line(status).c_str());
    std::fflush(out_);
    return;
  }
  winsize size{};
  const bool known = ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const size_t columns = known ? size.ws_col : 80;
  const int rows = known && size.ws_row > 1 ? size.ws_row - 1 : 23;
  erase();
  for (std::string line : live_lines(status)) {
    if (drawn_ == rows) break;  // the cursor cannot move up to lines that scrolled away
    // A line that wraps would count as two when the cursor moves up. ("±" is two bytes, one
    // column.)
    if (line.size() > columns) {
      line.resize(columns);
      while (!line.empty() && static_cast<uint8_t>(line.back()) >= 0x80) line.pop_back();
    }
    std::fprintf(out_, "%s\n", line.c_str());
    ++drawn_;
  }
  std::fflush(out_);
}

void LiveView::say(const std::string& line) {
  erase();
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
}

}  // namespace stoker
