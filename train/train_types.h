// The values that a Trainer takes and returns: the options of a run, its reports, its result, and
// the observer of a run. The files in this folder's subfolders include this header and never
// train/trainer.h. Values: copied freely, no threads, no errors.
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
#include "train/collective/traffic.h"
#include "train/collective/wire/grad_wire.h"
#include "train/engine/engine.h"
#include "train/evaluate.h"
#include "train/model/recipe.h"

namespace stoker {

struct TrainOptions {
  Recipe recipe;
  // Number of CPU replicas in this process; used only if `devices` is empty.
  int replicas = 1;
  std::vector<std::string> devices;  // one replica on each: "cpu:0", "cuda:1"
  // The processes of the run, which must outlive the Trainer; null for a single process.
  ProcessGroup* processes = nullptr;
  int local_processes = 1;  // how many of them run on this machine and share its cores
  // If it is `independent`, every replica trains, evaluates and saves a model of its own. All begin
  // with the same weights; each learns from its share of every batch, and by the rate for so many
  // samples.
  ReduceKind reduce = ReduceKind::automatic;
  // The format of gradients that travel between replicas. Any but fp32 rounds, so that the weights
  // depend on the number of replicas (train/collective/wire/codec.h).
  GradWire grad_wire = GradWire::fp32;
  // GPUs sum gradients in buckets of about this many bytes of fp32 while the backward pass runs
  // (train/device/buckets.h); 0: they sum all gradients after the backward pass.
  int64_t bucket_bytes = int64_t{25} << 20;
  // The statistics of a batch norm are those of a micro-batch of every replica, as
  // torch.nn.SyncBatchNorm's, not of one replica's alone: the weights then depend on the number of
  // replicas. For CPU replicas of one process; a single replica has nothing to synchronise with.
  bool sync_batch_norm = false;
  bool batch_auto = false;  // replaces recipe.batch by the largest batch that fits into memory
  // Parts in which each replica takes its share of a global batch, one after the other. Their
  // gradients are summed before the one reduction and update, so memory is that of one part. On
  // GPUs batch norm sees the rows of a part together.
  int accumulate = 1;
  uint64_t seed = 0;  // of the initial weights, the sample order and the augmentation
  // Which training samples an epoch takes, in which order, as LoaderOptions::order; null: every
  // sample once, shuffled. Evaluation takes every sample once.
  SharedOrder order{};
  // Weights to begin with instead of random ones: see InitialWeights in train/run/run_start.h. "":
  // none. A run that resumes has its weights from its checkpoint.
  std::string init;
  std::string out;  // folder of results, created if needed; "": nothing is written
  // Resume from the newest complete checkpoint in `out`, or start anew if there is none.
  bool resume = false;

  // Steps between two checkpoints; 0: none. A checkpoint is always saved at the end of an epoch.
  int64_t checkpoint_steps = 0;
  int keep_checkpoints = 3;      // number of newest checkpoints that are kept; >= 1
  double eval_every_epochs = 1;  // 0: only at the end of the run, which always evaluates
  int64_t limit_train = 0;       // > 0: about this many samples, spread evenly over the source
  int64_t limit_eval = 0;        // likewise for the evaluation
  int log_interval = 0;          // steps per StepReport and metrics row; 0: about 20 per epoch
  // > 0: the run ends after this step; the schedule is still that of the whole recipe.
  int64_t max_steps = 0;

  int threads = 0;  // compute threads of all replicas together; 0: one per core
  // Feed options of training and evaluation. Evaluation always uses the exact pixels of Pillow 13,
  // so that accuracies of runs can be compared.
  FeedOptions feed{.decode = {.pixels = PixelPolicy::fast}};
  int ring_depth = 4;   // of the training's Loader, as in LoaderOptions
  int slots = -1;       // likewise; -1: 0 on host devices, which lease the ring, 2 on GPUs
  bool receipt = true;  // write receipt.json with the digests of all pixels that were trained on
  // Keep the loss of every row of every step in row_losses.bin (train/run/step_log.h). For engines
  // that give them: the CPU's.
  bool row_losses = false;
  Tracer* tracer = nullptr;  // records the feed and the steps; must outlive the Trainer
  // Internal (pipeline/measure_hooks.h); null except in measurements.
  MeasureHooks* measure = nullptr;
  // For config.json: which samples of their data set the training data are, so that two runs can be
  // compared ("": all), and the options that named the data, (name, value).
  std::string subset;
  std::vector<std::pair<std::string, std::string>> data_options;
  // The program's version and its libraries with their versions, for receipt.json and config.json.
  std::string version;
  std::vector<std::pair<std::string, std::string>> libraries;
};

// The state of a run at the end of a log interval. Rates are over the interval.
struct StepReport {
  int64_t step = 0;  // steps done, over all epochs
  int64_t total_steps = 0;
  int64_t epoch = 0;          // 0-based, of the last step done
  int64_t step_in_epoch = 0;  // steps done in this epoch
  int64_t steps_per_epoch = 0;
  double epochs = 0;    // of the recipe
  double loss = 0;      // mean over the interval
  double accuracy = 0;  // top-1 on the augmented training samples, over the interval
  double learning_rate = 0;
  double images_per_second = 0;  // global batch / median step time
  // Images/s: 1.4826 * median absolute deviation, as in tf_cnn_benchmarks.
  double jitter = 0;
  // Share of the step time during which the replica with the longest wait waited for its batch.
  double feed_wait_share = 0;
  double eta_seconds = 0;   // training only
  Traffic traffic;          // per step and replica: the mean over all replicas of the run
  int64_t bad_samples = 0;  // since the start of this process
};

// The figures of a model of its own: of one of the replicas that train independently.
struct ReplicaFigures {
  double loss = 0, accuracy = 0;   // training, over the last epoch, as in EpochReport
  std::optional<EvalResult> eval;  // of the same kind as where these figures stand
  double best_top1 = 0;
  std::string checkpoint;  // its folder; "" if nothing is written
};

struct EpochReport {
  int64_t epoch = 0;  // 0-based
  int64_t step = 0;   // steps done, over all epochs
  double epochs_done = 0;
  // Training, over the epoch, or since the resume if the run resumed inside the epoch.
  double loss = 0, accuracy = 0;
  std::optional<EvalResult> eval;  // one view
  double images_per_second = 0, jitter = 0;
  double feed_wait_share = 0;
  double seconds = 0;      // of training, without evaluation
  std::string checkpoint;  // its folder; "" if nothing is written
  // For independent replicas, by rank over all processes: then `loss` and `accuracy` are of all
  // their samples, `eval` has their means, and `checkpoint` is that of the first. Else empty.
  std::vector<ReplicaFigures> replicas;
};

// The text that is printed before a run.
struct RunPlan {
  std::vector<std::string> lines;    // a screen at most: model, data, devices, memory, notes
  std::vector<std::string> details;  // the rest of the recipe, and the memory by its parts
  std::vector<std::string> all() const;
};

// Receives the progress of a run, so that a program can show it; the default methods do nothing.
// The methods are called from the thread of replica 0 and from run(), in process 0 only.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_plan(const RunPlan& plan) { (void)plan; }  // before the run
  virtual void on_step(const StepReport& report) { (void)report; }
  virtual void on_epoch(const EpochReport& report) { (void)report; }
  virtual void on_message(const std::string& line) {
    (void)line;
  }  // "resumed from ...", "warning: ..."
};

struct TrainResult {
  bool interrupted = false;  // by request_stop(); state is saved, `resume` continues from `step`
  int64_t step = 0;          // steps done, over all epochs
  int64_t total_steps = 0;
  double epochs_done = 0;
  double loss = 0, accuracy = 0;  // training, last epoch
  // The last evaluation, with one view and with the recipe's views; empty if the run was
  // interrupted or has nothing to evaluate.
  std::optional<EvalResult> eval_plain, eval;
  double best_top1 = 0;                      // of independent replicas: the best one's
  double images_per_second = 0, jitter = 0;  // over this process's run
  double feed_wait_share = 0;
  int64_t expected_bytes = 0;  // of host memory, of feeds and engines (MemoryPlan)
  double train_seconds = 0;    // without evaluation and checkpoints
  Traffic traffic;             // per step and replica, as in StepReport
  int64_t bad_samples = 0;
  std::optional<DecodedCacheStats> cache;  // of this process's feed; nullopt: it has none
  std::string checkpoint;                  // folder of the last one written, or ""
  std::string receipt;                     // path, or ""
  // As in EpochReport; with the recipe's views.
  std::vector<ReplicaFigures> replicas;
};

// A run cannot continue: the loss is not finite, there are too many bad samples, or a replica
// failed. The message names the step, the rows and the last good checkpoint.
class TrainingFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Creates the engine of a replica; the default is make_cpu_engine.
using EngineFactory =
    std::function<std::unique_ptr<Engine>(const NetSpec&, const EngineOptions&, int replica)>;

}  // namespace stoker
