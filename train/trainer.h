// train: batches on devices -> trained weights. This is the folder's public header.
//
// A Trainer runs N replicas of a net in one process. Each replica has one thread and its own slice
// of every global batch: next -> forward -> backward -> reduce (in a fixed order) -> update. The
// Trainer evaluates, writes checkpoints and metrics, and reports to an observer. The weights are
// bitwise the same for any number of replicas and threads (train/model/recipe.h); with
// synchronised batch norms (TrainOptions::sync_batch_norm) for any number of threads. They lie with
// every replica, or with a parameter server, from which replicas pull them (ReduceKind::server).
// Independent replicas (ReduceKind::independent) train a model each. Owner: the user; the sources
// and the observer must outlive it.
//
// With several processes (TrainOptions::processes) the replicas of all processes belong to one run
// and produce the same bits. Every process must be given the same options and data and must make
// the same calls. Process 0 reads and writes checkpoints, metrics and the receipt, and reports; the
// others write only their own bad samples (quarantine.rank1.jsonl, ...). A request to stop in any
// process stops all of them after the same step; if one process fails, all end.
//
// Threads: run() once; request_stop() from any thread or signal handler; the observer is called
// from one thread at a time. Errors: the constructor throws std::invalid_argument /
// std::runtime_error with path and numbers before anything is trained; run() throws TrainingFailed.
// out/ holds config.json, metrics.jsonl, metrics.csv, quarantine.jsonl (and quarantine_eval.jsonl
// of the last evaluation), receipt.json and checkpoints/, or replica_I/checkpoints/ of each
// independent replica (train/checkpoint/checkpoint.h). Until
// run() ends it also holds lock.json (train/run/lock.h): a second Trainer with the same folder
// fails with "in use by ...".
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
  // Checks all arguments and allocates all memory. If `eval` is null, nothing is evaluated.
  Trainer(const Source& train, const Source* eval, const TrainOptions& options,
          TrainObserver& observer, EngineFactory make_engine = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  TrainResult run();
  // Makes run() finish the step, save and return. Async-signal-safe.
  void request_stop() noexcept;
  // Returns the lines that on_plan gets: model, data, batch, effective learning rate, memory,
  // notes.
  const std::vector<std::string>& plan() const;
  int64_t planned_bytes() const;  // feed and engines together, without MemoryPlan::frame_bytes
  int64_t global_batch() const;   // rows per step, of all replicas and processes
  int64_t steps_per_epoch() const;
  LoaderStats feed_stats() const;  // of the training feed; from any thread
  // Returns the FNV-1a 64 hash of all parameters and statistics of replica 0, or of the server.
  // REQUIRES: run() is not running.
  uint64_t weights_hash() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
