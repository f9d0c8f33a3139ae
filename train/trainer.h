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

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "train/train_types.h"

namespace stoker {

class Trainer {
 public:
  // `eval` may be null: nothing is evaluated. Checks everything, allocates everything.
  Trainer(const Source& train, const Source* eval, const TrainOptions& options,
          TrainObserver& observer, EngineFactory make_engine = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  TrainResult run();
  void request_stop() noexcept;  // finish the step, save, return; async-signal-safe
  // What on_plan is given: model, data, batch, effective learning rate, memory, notes.
  const std::vector<std::string>& plan() const;
  int64_t planned_bytes() const;  // feed and engines together, without MemoryPlan::frame_bytes
  int64_t global_batch() const;   // rows per step, of all replicas and processes
  int64_t steps_per_epoch() const;
  LoaderStats feed_stats() const;  // of the training feed; from any thread
  // FNV-1a 64 of all parameters and statistics of replica 0. REQUIRES: run() is not running.
  uint64_t weights_hash() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
