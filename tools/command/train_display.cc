#include "tools/command/train_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "staging/allowed_cores.h"
#include "tools/live/prometheus.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

std::string rate_text(double images_per_second, double jitter, double wait_share) {
  return fmt::format("{} images/s ± {}, feed wait {:.1f}%", format_count(images_per_second),
                     format_count(jitter), 100 * wait_share);
}

}  // namespace

TrainDisplay::TrainDisplay(Options options) : options_(std::move(options)) {
  if (!options_.metrics_port) return;
  server_.emplace(*options_.metrics_port, [this] {
    const MutexLock lock(mutex_);
    return monitor_ ? prometheus_text(monitor_->status()) : "";
  });
}

void TrainDisplay::begin(const Trainer& trainer, const TrainOptions& options) {
  LiveMonitor::Options live;
  live.folder = options.out;
  live.feed_stats = [&trainer] { return trainer.feed_stats(); };
  live.status.run = fmt::format("{}, batch {}", options_.model, trainer.global_batch());
  live.status.process = getpid();
  live.status.workers =
      options.feed.workers < 0 ? usable_cores(options.local_processes) : options.feed.workers;
  live.status.io_threads = options.feed.io_threads;
  live.status.ring_depth = options.ring_depth;
  if (server_) {
    live.status.metrics_port = server_->port();
    say(fmt::format("metrics at http://127.0.0.1:{}/metrics", server_->port()));
  }
  if (options_.watch) {
    live.show = [this](const LiveStatus& status) {
      const MutexLock lock(mutex_);
      view_->show(status);
    };
  }
  const MutexLock lock(mutex_);
  if (options_.watch) view_.emplace(stdout);
  monitor_.emplace(std::move(live));
}

void TrainDisplay::finish() {
  server_.reset();
  monitor_.reset();
  const MutexLock lock(mutex_);
  progress_.reset();
  view_.reset();
}

void TrainDisplay::on_plan(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) say(line);
}

void TrainDisplay::on_step(const StepReport& report) {
  if (monitor_) monitor_->report(report);
  const MutexLock lock(mutex_);
  if (view_) return;
  if (!progress_) progress_.emplace(report.total_steps, stdout);
  if (!progress_->due()) return;
  const double epochs_done =
      report.epoch + static_cast<double>(report.step_in_epoch) / report.steps_per_epoch;
  progress_->update(
      report.step,
      fmt::format("epoch {:.2f}/{:g}  loss {:.3f}  acc {:.1f}%  {}  ETA {}", epochs_done,
                  report.epochs, report.loss, 100 * report.accuracy,
                  rate_text(report.images_per_second, report.jitter, report.feed_wait_share),
                  format_duration(report.eta_seconds)));
}

void TrainDisplay::on_epoch(const EpochReport& report) {
  std::string line = fmt::format("epoch {:.4g}: loss {:.3f}, acc {:.2f}%", report.epochs_done,
                                 report.loss, 100 * report.accuracy);
  if (report.eval) {
    line += fmt::format(", test loss {:.3f}, top-1 {:.2f}%, top-5 {:.2f}%", report.eval->loss,
                        100 * report.eval->top1, 100 * report.eval->top5);
  }
  say(fmt::format("{}; {}; {}", line,
                  rate_text(report.images_per_second, report.jitter, report.feed_wait_share),
                  format_duration(report.seconds)));
}

void TrainDisplay::say(const std::string& line) {
  const MutexLock lock(mutex_);
  if (view_) {
    view_->say(line);
  } else if (progress_) {
    progress_->say(line);
  } else {
    std::printf("%s\n", line.c_str());
  }
  std::fflush(stdout);
}

}  // namespace stoker
