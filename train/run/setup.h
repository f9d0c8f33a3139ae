// Everything that a training run stands on, made and checked before the first step and put together
// from its parts: the options made whole, how the batch is cut, replicas, the feed, where the run
// starts, and the plan that is printed. Owner: Trainer. Threads: made by one; TrainLoop says who
// uses what afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "pipeline/receipt/receipt.h"
#include "pipeline/source/subset_source.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/batch_shape.h"
#include "train/run/lock.h"
#include "train/run/processes.h"
#include "train/run/replica_set.h"
#include "train/run/resident_batches.h"
#include "train/train_types.h"

namespace stoker {

struct TrainSetup {
  // Throws std::invalid_argument / std::runtime_error with path and numbers.
  TrainSetup(const Source& train_source, const Source* eval_source, const TrainOptions& wanted,
             const EngineFactory& make_engine);
  TrainSetup(const TrainSetup&) = delete;
  TrainSetup& operator=(const TrainSetup&) = delete;

  EvalOptions eval_options(int views) const;
  // May this process write what a run leaves behind? Process 0 does, if anything is kept.
  bool writes() const { return processes.is_rank0() && !options.out.empty(); }

  TrainOptions options;  // complete_options(), with the batch and the rows per micro-batch in use
  TrainProcesses processes;
  SubsetSource train;
  const Source* eval;  // or null
  ReplicaShape shape;
  ModelInfo model;
  NetSpec net;
  std::unique_ptr<RunLock> lock;  // of options.out, where this process writes
  std::string runs;               // folder of checkpoints; "": none are written, here or at all

  ReplicaSet replicas;
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
  void choose_largest_batch(const EngineFactory& make_engine);
  void plan_feed();
  void make_folders();
  void make_loader();
  void make_resident();
  void make_receipt();
  void make_plan();
  void note(const std::vector<std::string>& more);
};

// Of the bad samples of a process: out/quarantine.jsonl, out/quarantine.rank1.jsonl, ...
std::string quarantine_file(const std::string& folder, const std::string& name, int rank);

}  // namespace stoker
