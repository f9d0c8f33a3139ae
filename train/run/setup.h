// Everything that a training run needs, created and checked before the first step: complete
// options, the division of the batch, replicas, the feed, where the run starts, and the plan that
// is printed. Owner: Trainer. Threads: one thread constructs it; TrainLoop says which thread uses
// what afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "pipeline/receipt/receipt.h"
#include "pipeline/source/subset_source.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/batch_feed.h"
#include "train/run/batch_shape.h"
#include "train/run/lock.h"
#include "train/run/processes.h"
#include "train/run/replica_set.h"
#include "train/run/run_start.h"
#include "train/train_types.h"

namespace stoker {

struct TrainSetup {
  // Throws std::invalid_argument / std::runtime_error with path and numbers.
  TrainSetup(const Source& train_source, const Source* eval_source, const TrainOptions& wanted,
             const EngineFactory& make_engine);
  TrainSetup(const TrainSetup&) = delete;
  TrainSetup& operator=(const TrainSetup&) = delete;

  EvalOptions eval_options(int views) const;
  // Returns whether each process has all models: a single process, or all train one together.
  bool all_models_here() const { return shape.models == shape.local_models; }
  // Returns the values of all models of the run, given those of this process's own ones. Every
  // process calls it.
  template <typename Value>
  std::vector<Value> of_all_models(const std::vector<Value>& own) {
    return all_models_here() ? own : processes.all_gather(std::span(own));
  }
  // Returns whether this process writes the run's files: process 0 does, if there is a folder.
  bool writes() const { return processes.is_rank0() && !options.out.empty(); }

  TrainOptions options;  // from complete_options(), with the actual batch and micro-batch rows
  TrainProcesses processes;
  SubsetSource train;
  const Source* eval;  // or null
  ReplicaShape shape;
  ModelInfo model;
  NetSpec net;
  std::unique_ptr<RunLock> lock;  // of options.out, if this process writes
  bool saves = false;             // process 0 writes checkpoints

  ReplicaSet replicas;
  CheckpointInfo progress;       // where the run starts; its loader state is of this run's batch
  std::vector<RunModel> models;  // where every model of the run starts
  LoaderOptions loader_options;
  // Why a cache of decoded pictures is not for the training, and not for the evaluation; "": it is,
  // or there is none, or nothing is evaluated.
  std::string no_train_cache, no_eval_cache;
  std::unique_ptr<Loader> loader;                          // after the devices: destroyed first
  std::vector<std::unique_ptr<ResidentBatches>> resident;  // one per replica, or empty
  std::unique_ptr<Receipt> receipt;  // in process 0, for all processes; or null
  int64_t steps_per_epoch = 0;
  // The run's steps minus those of its feed, by which epochs and schedule go: not 0 if it went on
  // from a checkpoint with another global batch.
  int64_t more_steps = 0;
  int64_t total_feed_steps = 0;     // of the recipe; length of the schedule
  int64_t end_step = 0;             // of this run
  int64_t state_copy_bytes = 0;     // while a checkpoint is written or read
  int64_t unused_bytes = 0;         // of engines: planned for an average that the recipe has not
  int64_t planned_bytes = 0;        // of this process, without whole frames (MemoryPlan)
  int64_t expected_bytes = 0;       // of this process, as MemoryPlan::expected_bytes
  int64_t expected_host_bytes = 0;  // of that: not on devices of their own memory
  std::vector<std::string> notes;   // for the user
  RunPlan plan;

 private:
  void choose_largest_batch(const EngineFactory& make_engine);
  void plan_feed();
  void plan_cache();
  void make_models();
  bool make_folders();
  void place_feed();
  void go_on_with_another_batch();
  void set_files_aside() const;
  void open_quarantine();
  void restore_wire(TrainState& state);
  void make_loader();
  void make_resident();
  void make_receipt();
  void make_plan();
  void note(const std::vector<std::string>& more);
};

// Made from all of `setup` except its plan (plan.cc).
RunPlan make_run_plan(const TrainSetup& setup, const MemoryPlan& eval_feed);
// Returns the options and the plan as JSON.
std::string config_text(const TrainSetup& setup);

// Returns what decides which rows a run is fed, of its whole global batch; the rest has defaults.
LoaderOptions feed_of(const TrainOptions& options);

// Returns the folder of what a run wrote about its samples before a step, with another batch.
std::string aside_folder(const std::string& folder, int64_t step);

// Returns the path of a process's file of bad samples: out/quarantine.jsonl,
// out/quarantine.rank1.jsonl, ...
std::string quarantine_file(const std::string& folder, const std::string& name, int rank);

}  // namespace stoker
