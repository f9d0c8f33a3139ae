// The values that a Trainer takes and gives: what a run is asked for, what it reports and how it
// ends, and the observer that is told. The rooms of this folder include this header, never the door
// (train/trainer.h). Values: copied freely, no threads, no errors.
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

#include "pipeline/loader_types.h"
#include "train/collective/process/process_group.h"
#include "train/collective/reduce_kind.h"
#include "train/engine/engine.h"
#include "train/evaluate.h"
#include "train/model/recipe.h"

namespace stoker {

struct TrainOptions {
  Recipe recipe;
  int replicas = 1;  // of this process, on the host's cores, where `devices` is empty
  std::vector<std::string> devices;   // one replica on each: "cpu:0", "cuda:1"
  ProcessGroup* processes = nullptr;  // of the run; null: this one. Outlives the Trainer
  int local_processes = 1;            // of them, on this machine: they share its cores
  ReduceKind reduce = ReduceKind::automatic;
  Precision comm_dtype = Precision::fp32;  // of gradients between GPUs
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

  int threads = 0;  // that compute, of all replicas together; 0: one per core
  // Of training and of its evaluation, which takes the exact pixels of Pillow 13, so that
  // accuracies compare.
  FeedOptions feed{.decode = {.pixels = PixelPolicy::fast}};
  int ring_depth = 4;   // LoaderOptions
  int slots = -1;       // LoaderOptions; -1: 0 on host devices, which lease the ring, 2 on GPUs
  bool receipt = true;  // write receipt.json: digests of all pixels trained on
  Tracer* tracer = nullptr;  // spans of the feed and of the steps go there; outlives the Trainer
  MeasureHooks* measure = nullptr;  // internal (pipeline/measure_hooks.h); null but to measure
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

}  // namespace stoker
