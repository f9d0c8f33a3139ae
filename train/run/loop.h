// Runs the steps of a run, with one thread per replica; a barrier keeps them at the same step. The
// thread of replica 0 also counts, reports, saves and communicates with the other processes while
// the others wait. An engine that queues its work has the metrics of a step some steps later:
// replica 0 accounts for a step when those of all models are there, and for all steps before the
// end of an epoch, a checkpoint and the end of the run.
//
// A replica leaves its data of a step for replica 0 in traces_, in the element of that step. It
// writes them before the step's barrier, and the element is used again only kTraces steps later,
// when the step has been accounted for. Model I of a process is that of its replica I, which leaves
// the metrics: before the barrier of the next step, but for replica 0 itself.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "staging/error_text.h"
#include "staging/mutex.h"
#include "train/collective/barrier.h"
#include "train/run/batch_feed.h"
#include "train/run/report.h"
#include "train/run/setup.h"
#include "train/run/step_log.h"
#include "train/run/step_trace.h"

namespace stoker {

class TrainLoop {
 public:
  // All must outlive the loop. Any thread may set `stop` at any time.
  TrainLoop(TrainSetup& setup, TrainObserver& observer, const std::atomic<bool>& stop);
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;
  TrainResult run();  // once; throws TrainingFailed

 private:
  // A step is accounted for at most Engine::kMetricsKept steps after it.
  static constexpr int64_t kTraces = Engine::kMetricsKept + 2;
  struct Trace {
    StepNotes own;                     // of this process; each replica writes its samples
    std::vector<int64_t> waits;        // of each replica, ns
    std::vector<RowResult> results;    // of the rows of this process, as StepNotes::ids
    std::vector<StepMetrics> metrics;  // of each model of this process
    std::vector<StepNotes> all;        // by process; in process 0 only
    double learning_rate = 0;
    BatchHeader header;
  };

  Tracer* tracer() const { return setup_.options.tracer; }
  Trace& trace_of(int64_t step) { return traces_[static_cast<size_t>(step % kTraces)]; }
  void replica(int rank);
  void train_step(int rank, int64_t step, BatchFeed& feed, StepRates& rates, StepTrace& trace);
  void leave_metrics(int rank, int64_t steps_done);
  void train_part(int rank, int part, int64_t step, BatchFeed& feed, StepTrace& trace);
  size_t first_row(int rank, int part) const;  // of StepNotes::ids
  void note_batch(int rank, int part, int64_t step, const FedBatch& batch, int64_t wait_ns);
  void note_losses(size_t first, int64_t step, const FedBatch& batch);
  bool note_warning(int rank);
  void fail() noexcept;  // REQUIRES: an exception is being handled

  // Only replica 0 calls the functions below.
  void start(int64_t first);
  void end_step(int64_t step);
  void take_notes(int64_t step);
  void account_until(int64_t steps_done);
  void account(int64_t step, const std::vector<StepMetrics>& metrics);
  void log_step(int64_t step, const std::vector<StepMetrics>& metrics);
  void check_bad_samples(const Trace& trace);
  void report_warnings(int64_t steps_done);
  void close_epoch(int64_t steps_done);
  bool evaluate_epoch(int64_t steps_done, EpochReport& report);
  void save(int64_t steps_done);
  void save_model(size_t model, std::vector<float> residuals);
  bool checkpoint_due(int64_t steps_done) const;
  bool ends_epoch(int64_t steps_done) const;
  int64_t feed_step(int64_t step) const { return step - setup_.more_steps; }
  [[noreturn]] void throw_not_finite(int64_t step, size_t model, const StepMetrics& metrics);
  std::string last_checkpoint_text() const;
  void finish_result();

  TrainSetup& setup_;
  const std::atomic<bool>& stop_;
  const int64_t log_interval_;
  const int64_t first_step_;
  Barrier gate_;  // of this process's replicas
  const std::vector<TensorInfo> parameters_;
  std::array<Trace, kTraces> traces_;
  std::vector<int64_t> metrics_left_;  // steps whose metrics a replica has left; each its own

  // The step after which all replicas end; set by replica 0 before that step's barrier.
  std::atomic<int64_t> stop_step_;
  FirstError error_;
  Mutex mutex_;
  std::vector<std::string> warnings_ GUARDED_BY(mutex_);  // not reported yet

  // Replica 0's.
  RunReport report_;
  StepLog step_log_;
  CheckpointInfo progress_;
  std::vector<RunModel> models_;  // of the run
  int64_t queued_;           // steps given to the engines; progress_.step of them are accounted for
  int64_t bad_samples_ = 0;  // of all processes
  int64_t epoch_bad_samples_ = 0;       // before the epoch
  Traffic traffic_;                     // of this process, up to the last step
  std::vector<RowNote> row_notes_;      // of a replica, for the receipt
  std::vector<RowLoss> row_losses_;     // of a global batch
  std::vector<EvalResult> last_evals_;  // at the run's end, with the recipe's views, by model
  bool closed_end_ = false;             // the end's evaluation and report are done
  TrainResult result_;
};

}  // namespace stoker
