// Reports the progress of a run: rates and mean losses over intervals and epochs, for the observer
// and the metrics files. Owner: TrainLoop. Threads: only that of replica 0. Only process 0 reports;
// the others only count. Errors: what MetricsLog throws.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/engine/engine.h"
#include "train/run/metrics.h"
#include "train/run/setup.h"

namespace stoker {

class RunReport {
 public:
  // Both arguments must outlive it.
  RunReport(const TrainSetup& setup, TrainObserver& observer);
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  // Restarts the clock, so that what was done since the last step (evaluation, a checkpoint, a
  // report) does not count as training.
  void start_clock();
  // Counts a finished step, in which the slowest feed kept its replica waiting for `wait_ns` and
  // all replicas together had `traffic`. Adds the metrics of every model to the totals of its
  // epoch.
  void add_step(std::span<const StepMetrics> metrics, int64_t wait_ns, const Traffic& traffic,
                std::span<RunModel> models);
  // Reports the interval that ends with this step.
  void report_step(int64_t steps_done, double learning_rate, int64_t bad_samples);
  void report_warnings(int64_t steps_done, const std::vector<std::string>& warnings);
  EpochReport epoch_report(int64_t steps_done, std::span<const RunModel> models) const;
  void report_epoch(const EpochReport& report);
  void begin_epoch();
  // Fills in the rates over the whole run.
  void add_rates(TrainResult& result) const;

 private:
  struct StepTimes {
    int64_t total_ns = 0, wait_ns = 0;
  };
  struct StepTraffic {
    Traffic sum;
    int64_t steps = 0;
  };
  Traffic per_replica(const StepTraffic& traffic) const;  // in a step

  const TrainSetup& setup_;
  TrainObserver& observer_;
  MetricsLog metrics_;
  int64_t last_ns_;  // end of the previous step
  RateMeter recent_rate_, epoch_rate_, run_rate_;
  StepTimes interval_times_, epoch_times_, run_times_;
  StepTraffic interval_traffic_, run_traffic_;
  RunningTotals interval_;
};

}  // namespace stoker
