// The steps of a run: one thread per replica, in lockstep through the collective. Replica 0's
// thread also counts, reports and saves while the others wait. What a replica leaves for it in a
// step lies in traces_, by the step's parity: written before the step's all-reduce and not again
// before the next step's, which replica 0 must enter first.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "train/metrics.h"
#include "train/train_setup.h"

namespace stoker {

class TrainLoop {
 public:
  // All outlive the loop. `stop` may be set by anyone at any time.
  TrainLoop(TrainSetup& setup, TrainObserver& observer, const std::atomic<bool>& stop);
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;
  TrainResult run();  // once; throws TrainingFailed

 private:
  struct Trace {
    std::vector<SampleId> ids;
    int64_t wait_ns = 0;
  };
  struct StepTimes {
    int64_t total_ns = 0, wait_ns = 0;
  };

  void replica(int rank);
  StepTotals train_step(int rank, int64_t step, Stream& stream, StepRates& rates);
  void fail(std::exception_ptr error) noexcept;

  // Replica 0 only, from here on.
  void account(int64_t step, const StepTotals& totals, double learning_rate, int64_t step_ns);
  void report_step(int64_t steps_done, double learning_rate);
  EpochReport epoch_report(int64_t steps_done) const;
  void close_epoch(int64_t steps_done);
  bool evaluate_epoch(int64_t steps_done, EpochReport& report);
  void save(int64_t steps_done);
  bool checkpoint_due(int64_t steps_done) const;
  bool ends_epoch(int64_t steps_done) const;
  [[noreturn]] void throw_not_finite(int64_t step, const StepTotals& totals) const;
  std::string last_checkpoint_text() const;
  void finish_result();

  TrainSetup& setup_;
  TrainObserver& observer_;
  const std::atomic<bool>& stop_;
  const int64_t log_interval_;
  std::array<std::vector<Trace>, 2> traces_;

  // The step after which all replicas end; set by replica 0 before that step's all-reduce.
  std::atomic<int64_t> stop_step_;
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_; the first

  // Replica 0's.
  MetricsLog metrics_;
  CheckpointInfo progress_;
  RateMeter recent_rate_, epoch_rate_, run_rate_;
  StepTimes interval_times_, epoch_times_, run_times_;
  RunningTotals interval_;
  std::string last_checkpoint_;
  bool closed_end_ = false;  // the end's evaluation and report are done
  TrainResult result_;
};

}  // namespace stoker
