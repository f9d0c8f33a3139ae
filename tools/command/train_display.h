// The display of `stoker train` while it runs: a progress bar and a line per epoch, or with --watch
// the figures of its feed and devices. It also serves `stoker top` and Prometheus.
//
// Owner: the command. Threads: the trainer's and its own.
#pragma once

#include <optional>
#include <string>

#include "staging/mutex.h"
#include "tools/console/progress.h"
#include "tools/live/metrics_server.h"
#include "tools/live/monitor.h"
#include "tools/live/view.h"
#include "train/run/metrics.h"

namespace stoker {

// Text about one of several independent replicas, and about all: "loss 1.2, acc 55.10%, test
// loss ...", "top-1 of 2 replicas: mean ...".
std::string replica_text(const ReplicaFigures& replica);
std::string spread_text(const Spread& top1, size_t replicas);

class TrainDisplay final : public TrainObserver {
 public:
  struct Options {
    bool watch = false;
    bool verbose = false;             // all of the plan
    std::optional<int> metrics_port;  // 0: any free port
    std::string model;
  };
  // Throws std::runtime_error if it cannot listen on the port.
  explicit TrainDisplay(Options options);

  // Watches `trainer`, which was made with `options`, from its construction to its destruction.
  class Watching {
   public:
    Watching(TrainDisplay& display, const Trainer& trainer, const TrainOptions& options)
        : display_(display) {
      display.begin(trainer, options);
    }
    ~Watching() { display_.finish(); }
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;

   private:
    TrainDisplay& display_;
  };

  void on_plan(const RunPlan& plan) override;
  void on_message(const std::string& line) override { say(line); }
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;

 private:
  void begin(const Trainer& trainer, const TrainOptions& options);
  void finish();  // leaves the view's last figures on the screen
  void say(const std::string& line);
  void say_expected(const StepReport& report);

  const Options options_;
  int64_t reports_ = 0;  // of steps; the trainer's thread
  Mutex mutex_;          // guards what is drawn
  std::optional<Progress> progress_ GUARDED_BY(mutex_);
  std::optional<LiveView> view_ GUARDED_BY(mutex_);  // with --watch
  std::optional<LiveMonitor> monitor_;
  std::optional<MetricsServer> server_;
};

}  // namespace stoker
