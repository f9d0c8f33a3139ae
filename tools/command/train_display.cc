#include "tools/command/train_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "staging/allowed_cores.h"
#include "tools/live/status.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

std::string rate_text(double images_per_second, double jitter, double wait_share) {
  return fmt::format("{} images/s ± {}, feed wait {:.1f}%", format_count(images_per_second),
                     format_count(jitter), 100 * wait_share);
}

std::string figures_text(double loss, double accuracy, const std::optional<EvalResult>& eval) {
  std::string text = fmt::format("loss {:.3f}, acc {:.2f}%", loss, 100 * accuracy);
  if (eval) {
    text += fmt::format(", test loss {:.3f}, top-1 {:.2f}%, top-5 {:.2f}%", eval->loss,
                        100 * eval->top1, 100 * eval->top5);
  }
  return text;
}

}  // namespace

std::string replica_text(const ReplicaFigures& replica) {
  return figures_text(replica.loss, replica.accuracy, replica.eval);
}

std::string spread_text(const Spread& top1, size_t replicas) {
  return fmt::format(
      "top-1 of {} replicas: mean {:.2f}%, standard deviation {:.2f}, from {:.2f}% to {:.2f}%",
      replicas, 100 * top1.mean, 100 * top1.deviation, 100 * top1.lowest, 100 * top1.highest);
}

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

void TrainDisplay::on_plan(const RunPlan& plan) {
  for (const std::string& line : options_.verbose ? plan.all() : plan.lines) say(line);
}

// The second report is the first without the steps that fill rings and caches. A run that ends
// within half an epoch needs no line.
void TrainDisplay::say_expected(const StepReport& report) {
  const int64_t left = report.total_steps - report.step;
  if (++reports_ != 2 || report.images_per_second <= 0 || left < report.steps_per_epoch / 2) return;
  const double epoch_s =
      report.eta_seconds / static_cast<double>(left) * static_cast<double>(report.steps_per_epoch);
  say(fmt::format("expected: {} per epoch, {} for the rest, without evaluations",
                  format_duration(epoch_s), format_duration(report.eta_seconds)));
}

void TrainDisplay::on_step(const StepReport& report) {
  if (monitor_) monitor_->report(report);
  say_expected(report);
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
  say(fmt::format("epoch {:.4g}: {}; {}; {}", report.epochs_done,
                  figures_text(report.loss, report.accuracy, report.eval),
                  rate_text(report.images_per_second, report.jitter, report.feed_wait_share),
                  format_duration(report.seconds)));
  for (size_t i = 0; i < report.replicas.size(); ++i) {
    say(fmt::format("  replica {}: {}", i, replica_text(report.replicas[i])));
  }
  if (const auto spread = top1_spread(report.replicas)) {
    say("  " + spread_text(*spread, report.replicas.size()));
  }
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
