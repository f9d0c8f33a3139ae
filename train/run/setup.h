// Everything that a training run stands on, made and checked before the first step: sources, net,
// replicas, feed, first weights or those of a checkpoint, and the plan that is printed. Owner:
// Trainer. Threads: made by one; TrainLoop says who uses what afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "pipeline/measure_hooks.h"
#include "pipeline/receipt/receipt.h"
#include "pipeline/source/subset_source.h"
#include "train/checkpoint/checkpoint.h"
#include "train/collective/collective.h"
#include "train/run/lock.h"
#include "train/run/processes.h"
#include "train/run/replica.h"
#include "train/run/resident_batches.h"
#include "train/train_types.h"

namespace stoker {

struct TrainSetup {
  // Throws std::invalid_argument / std::runtime_error with path and numbers.
  TrainSetup(const Source& train_source, const Source* eval_source, const TrainOptions& wanted,
             const EngineFactory& make_engine);
  TrainSetup(const TrainSetup&) = delete;
  TrainSetup& operator=(const TrainSetup&) = delete;

  const MeasureHooks& measure() const;  // those of the options, or none
  EvalOptions eval_options(int views) const;
  EngineOptions engine_options() const;  // of a replica
  BatchShape batch_shape() const;        // of a replica
  std::vector<Engine*> engine_list() const;
  std::vector<Device*> device_list() const;

  // May this process write what a run leaves behind? Process 0 does, if anything is kept.
  bool writes() const { return processes.first() && !options.out.empty(); }
  int all_replicas() const { return processes.size() * options.replicas; }

  TrainOptions options;  // options.recipe has the rows per shard in use
  TrainProcesses processes;
  SubsetSource train;
  const Source* eval;  // or null
  ModelInfo model;
  NetSpec net;
  std::vector<TensorInfo> parameters;
  int rows = 0;            // per replica and step
  int engine_threads = 1;  // per replica
  Precision precision = Precision::fp32;
  std::unique_ptr<RunLock> lock;  // of options.out, where this process writes
  std::string runs;               // folder of checkpoints; "": none are written, here or at all

  std::vector<Replica> replicas;
  std::unique_ptr<Collective> collective;
  bool in_buckets = false;  // engines start the collective's sums themselves, in forward_backward()
  CheckpointInfo progress;  // where the run starts
  std::string resumed_from;
  LoaderOptions loader_options;
  std::unique_ptr<Loader> loader;                          // after the devices: it goes first
  std::vector<std::unique_ptr<ResidentBatches>> resident;  // one per replica; or empty
  std::unique_ptr<Receipt> receipt;                        // of all processes, process 0's; or null
  int64_t steps_per_epoch = 0;
  int64_t total_steps = 0;         // of the recipe: the schedule's length
  int64_t end_step = 0;            // of this run
  int64_t state_copy_bytes = 0;    // held while a checkpoint is written or resumed from
  int64_t planned_bytes = 0;       // of this process, without whole frames (MemoryPlan)
  std::vector<std::string> notes;  // what the user should know
  std::vector<std::string> plan;

 private:
  void check_options();
  void choose_batch(const NetSpec& planned, const EngineFactory& make_engine);
  void resolve_shards();
  void make_replicas(const EngineFactory& make_engine);
  void reduce_in_buckets();
  void plan_feed();
  void make_folders();
  TrainState first_state();  // of the newest checkpoint, or the recipe's; from process 0
  TrainState resume();       // of the newest checkpoint; empty if there is none
  TrainState initial_state() const;
  void make_loader();
  void make_resident();
  void make_receipt();
  void make_plan();
};

// Of the bad samples of a process: out/quarantine.jsonl, out/quarantine.rank1.jsonl, ...
std::string quarantine_file(const std::string& folder, const std::string& name, int rank);
// The lines of `plan`.
std::vector<std::string> plan_lines(const TrainSetup& setup, const MemoryPlan& eval_feed);
// options as they stand in config.json.
std::string config_text(const TrainSetup& setup);

}  // namespace stoker
