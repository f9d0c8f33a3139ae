// The values that a Trainer takes and gives: what a run is asked for, what it reports and how it
// ends, and the observer that is told. The rooms of this folder include this header, never the door
// (train/trainer.h). Values: copied freely, no threads, no errors.
#pragma once

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
  // Replicas of this process on the host's cores; it counts only where `devices` is empty.
  int replicas = 1;
  std::vector<std::string> devices;  // one replica is made on each: "cpu:0", "cuda:1"
  // The processes of the run, which outlive the Trainer; null if this one is alone.
  ProcessGroup* processes = nullptr;
  int local_processes = 1;  // how many of them run on this machine and share its cores
  ReduceKind reduce = ReduceKind::automatic;
  Precision comm_dtype = Precision::fp32;  // in which gradients travel between GPUs
  // GPUs sum gradients in buckets of about this many bytes of fp32 while the backward pass runs
  // (train/device/buckets.h); 0 sums all of them at its end.
  int64_t bucket_bytes = int64_t{25} << 20;
  bool batch_auto = false;  // recipe.batch becomes the largest that fits into memory
  uint64_t seed = 0;        // decides the first weights, the order and the augmentation
  std::string out;          // folder of results, which is made if needed; "" writes nothing
  // Go on from the newest whole checkpoint in `out`, or start anew if there is none.
  bool resume = false;

  // Steps between two checkpoints; 0 saves only at the end of an epoch, which always saves.
  int64_t checkpoint_steps = 0;
  int keep_checkpoints = 3;      // how many of the newest are kept; >= 1
  double eval_every_epochs = 1;  // 0 evaluates only at the end, which is always evaluated
  int64_t limit_train = 0;       // > 0: about this many samples, spread evenly over the source
  int64_t limit_eval = 0;        // likewise, of the evaluation
  int log_interval = 0;          // steps per StepReport and metrics row; 0: about 20 per epoch
  // > 0: the run ends after this step; the schedule stays that of the recipe.
  int64_t max_steps = 0;

  int threads = 0;  // that compute, of all replicas together; 0: one per core
  // Training and its evaluation read with these options. Evaluation takes the exact pixels of
  // Pillow 13 whatever stands here, so that accuracies compare.
  FeedOptions feed{.decode = {.pixels = PixelPolicy::fast}};
  int ring_depth = 4;        // as in LoaderOptions, of the training's Loader
  int slots = -1;            // likewise; -1: 0 on host devices, which lease the ring, 2 on GPUs
  bool receipt = true;       // receipt.json gets the digests of all pixels that were trained on
  Tracer* tracer = nullptr;  // takes spans of the feed and of the steps; outlives the Trainer
  MeasureHooks* measure = nullptr;  // internal (pipeline/measure_hooks.h); null but to measure
  // The program's version, and its libraries with theirs, for receipt.json and config.json.
  std::string version;
  std::vector<std::pair<std::string, std::string>> libraries;
};

// Where a run stands at the end of each log interval. Rates are over the interval.
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

// Is told how a run goes, so that a program can show it; by default it shows nothing. Calls come
// from the thread of replica 0 and from run(), in process 0 only.
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
  // The last evaluation, with one view and with the recipe's views; empty if the run was
  // interrupted or has nothing to evaluate.
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
