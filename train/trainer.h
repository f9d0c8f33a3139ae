// train: batches on devices -> trained weights. This is the folder's door.
//
// A Trainer runs N replicas of a net in one process, one thread each, on its own slice of every
// global batch: next -> forward -> backward -> reduce (in a fixed order) -> update; it evaluates,
// writes checkpoints and metrics, and reports to an observer. The weights are bitwise the same for
// any number of replicas and threads (train/model/recipe.h). Owner: the user; sources and the
// observer outlive it.
//
// Over several processes (TrainOptions::processes) all replicas together are those of one run, with
// the same bits: every process is given the same options and data, and calls the same. Process 0
// reads and writes checkpoints, metrics and the receipt, and reports; the others write only their
// own bad samples (quarantine.rank1.jsonl, ...). A request to stop to any of them stops all after
// the same step; a process that fails ends all.
//
// Threads: run() once; request_stop() from any thread or signal handler; the observer is called
// from one thread at a time. Errors: the constructor throws std::invalid_argument /
// std::runtime_error with path and numbers before anything is trained; run() throws TrainingFailed.
//
// out/ holds config.json, metrics.jsonl, metrics.csv, quarantine.jsonl (and quarantine_eval.jsonl
// of the last evaluation), receipt.json and checkpoints/ (train/checkpoint/checkpoint.h). Until
// run() ends also lock.json (train/run/lock.h): a second Trainer that would write there fails with
// "in use by ...".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/loader.h"
#include "train/collective/process/process_group.h"
#include "train/collective/reduce_kind.h"
#include "train/evaluate.h"
#include "train/model/recipe.h"

namespace stoker {

enum class FeedKind : uint8_t {
  real,
  synthetic,  // the first batches, one per slot, again and again: the cost of input is gone
  // The first epoch, or as much of it as TrainOptions::resident_bytes hold, staged on the device
  // before the first step and replayed in its order: no decoding and no copy to the device, but
  // other rows in every step. Crops and flips stay as they were drawn for that epoch. real -
  // resident is what input costs; resident - synthetic is what other data cost.
  resident,
};

struct TrainOptions {
  Recipe recipe;
  int replicas = 1;  // of this process, on the host's cores, where `devices` is empty
  std::vector<std::string> devices;   // one replica on each: "cpu:0", "cuda:1"
  ProcessGroup* processes = nullptr;  // of the run; null: this one. Outlives the Trainer
  int local_processes = 1;            // of them, on this machine: they share its cores
  // To measure with: nothing is saved where something is left out.
  FeedKind feed = FeedKind::real;
  int64_t resident_bytes = 0;  // FeedKind::resident: of each device; 0: the whole epoch must fit
  ReduceKind reduce = ReduceKind::automatic;
  // While true, steps see the batch before them again: what is left of a step without its input.
  const std::atomic<bool>* replay = nullptr;
  Tracer* tracer = nullptr;  // spans of the feed and of the steps go there; outlives the Trainer
  int spare_workers = 0;     // LoaderOptions
  Precision grad_wire = Precision::fp32;  // of gradients between GPUs
  // Gradients on GPUs are summed in buckets of about this many bytes of fp32 while the backward
  // pass runs (train/device/buckets.h); 0: all at its end.
  int64_t bucket_bytes = int64_t{25} << 20;
  bool batch_auto = false;  // recipe.batch becomes the largest that fits into memory
  uint64_t seed = 0;        // of initial weights, order and augmentation
  std::string out;          // folder of results, made if needed; "": nothing is written
  bool resume = false;  // go on from out's newest whole checkpoint; from the start if there is none

  int64_t checkpoint_steps = 0;  // > 0: also every so many steps; always at the end of an epoch
  int keep_checkpoints = 3;      // the newest; >= 1
  double eval_every_epochs = 1;  // 0: only at the end; the end is always evaluated
  int64_t limit_train = 0;       // > 0: about this many samples, spread evenly over the source
  int64_t limit_eval = 0;
  int log_interval = 0;  // steps per StepReport and metrics row; 0: about 20 per epoch
  int64_t max_steps =
      0;  // > 0: end the run after this step (the schedule stays that of the recipe)

  int threads = 0;     // that compute, of all replicas together; 0: one per core
  int workers = -1;    // that decode; -1: one per core
  int io_threads = 2;  // that read files
  int ring_depth = 4;  // LoaderOptions
  int slots = -1;      // LoaderOptions; -1: 0 on host devices, which lease the ring, 2 on GPUs
  // Of training; evaluation takes the exact pixels of Pillow 13, so that accuracies compare.
  DecodeOptions decode{.pixels = PixelPolicy::fast};
  OnBadSample on_bad_sample = OnBadSample::substitute;
  double max_bad = 0.05;
  std::string seek_index = "auto";  // LoaderOptions
  bool receipt = true;              // write receipt.json: digests of all pixels trained on
  // Of the program, for receipt.json and config.json: its version; libraries and theirs.
  std::string version;
  std::vector<std::pair<std::string, std::string>> libraries;
};

// What a run stands at, every log interval. Rates are over the interval.
struct StepReport {
  int64_t step = 0;  // steps done, over all epochs
  int64_t total_steps = 0;
  int64_t epoch = 0;          // 0-based, of the last step done
  int64_t step_in_epoch = 0;  // done in it
  int64_t steps_per_epoch = 0;
  double epochs = 0;    // of the recipe
  double loss = 0;      // mean over the interval
  double accuracy = 0;  // top-1 on the training rows as augmented, over the interval
  double learning_rate = 0;
  double images_per_second = 0;  // global batch / median step time
  double jitter = 0;           // images/s: 1.4826 * median absolute deviation, as tf_cnn_benchmarks
  double feed_wait_share = 0;  // of step time that the slowest-fed replica waited for its batch
  double eta_seconds = 0;      // training only
  int64_t bad_samples = 0;     // since the start of this process
};

struct EpochReport {
  int64_t epoch = 0;  // 0-based
  int64_t step = 0;   // steps done, over all epochs
  double epochs_done = 0;
  double loss = 0, accuracy = 0;   // training, over the epoch (since resume, if that was inside it)
  std::optional<EvalResult> eval;  // one view
  double images_per_second = 0, jitter = 0;
  double feed_wait_share = 0;
  double seconds = 0;      // of training, evaluation not counted
  std::string checkpoint;  // its folder; "" if nothing is written
};

// What the program shows. Default: nothing. Calls come from the thread of replica 0 and from run(),
// in process 0 only.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_plan(const std::vector<std::string>& lines) { (void)lines; }  // before the run
  virtual void on_step(const StepReport& report) { (void)report; }
  virtual void on_epoch(const EpochReport& report) { (void)report; }
  virtual void on_message(const std::string& line) {
    (void)line;
  }  // "resumed from ...", "warning: ..."
};

struct TrainResult {
  bool interrupted = false;  // by request_stop(): saved, `resume` goes on from `step`
  int64_t step = 0;          // steps done, over all epochs
  int64_t total_steps = 0;
  double epochs_done = 0;
  double loss = 0, accuracy = 0;  // training, last epoch
  // Of the end, with one view and with the recipe's; empty if interrupted or nothing to evaluate.
  std::optional<EvalResult> eval_plain, eval;
  double best_top1 = 0;
  double images_per_second = 0, jitter = 0;  // over this process's run
  double feed_wait_share = 0;
  double train_seconds = 0;  // evaluation, checkpoints not counted
  int64_t bad_samples = 0;
  std::string checkpoint;  // folder of the last one written; ""
  std::string receipt;     // path; ""
};

// A run that cannot go on: loss not finite, too many bad samples, a replica that failed. The
// message names the step, the rows and the last good checkpoint.
class TrainingFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Makes the engine of a replica; the default is make_cpu_engine.
using EngineFactory =
    std::function<std::unique_ptr<Engine>(const NetSpec&, const EngineOptions&, int replica)>;

class Trainer {
 public:
  // `eval` may be null: nothing is evaluated. Checks everything, allocates everything.
  Trainer(const Source& train, const Source* eval, const TrainOptions& options,
          TrainObserver& observer, EngineFactory make_engine = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  TrainResult run();
  void limit_workers(int workers) noexcept;  // Loader's
  void request_stop() noexcept;              // finish the step, save, return; async-signal-safe
  // What on_plan is given: model, data, batch, effective learning rate, memory, notes.
  const std::vector<std::string>& plan() const;
  int64_t planned_bytes() const;  // feed and engines together, without MemoryPlan::frame_bytes
  int64_t global_batch() const;   // rows per step, of all replicas and processes
  int64_t steps_per_epoch() const;
  LoaderStats feed_stats() const;  // of the training feed; from any thread
  // FNV-1a 64 of all parameters and statistics of replica 0. REQUIRES: run() is not running.
  uint64_t weights_hash() const;
  // Writes replica 0's weights to the folder `runs`, as a checkpoint of the run's first step: to
  // measure what that takes. Throws what save_checkpoint() throws. REQUIRES: run() is not running.
  void save_to(const std::string& runs) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
