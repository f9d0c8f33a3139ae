// train: batches on devices -> trained weights. This is the folder's public header.
//
// A Trainer runs N replicas of a net in this process, one thread each: next -> forward -> backward
// -> reduce (in a fixed order) -> update; and it evaluates, saves and reports. The weights are
// bitwise the same for any number of replicas and threads (train/model/recipe.h), but for options
// that say otherwise. ReduceKind is what replicas exchange, or that each trains a model of its own.
//
// The processes of a run (TrainOptions::processes) get the same options and data and make the same
// calls. Process 0 reads and writes all files and reports; the others write their own bad samples
// alone (quarantine.rank1.jsonl, ...). If one fails, all end.
//
// Owner: the user; the sources and the observer must outlive it. Threads: run() once;
// request_stop() from any thread or signal handler; the observer gets calls from one thread at a
// time. Errors: the constructor throws std::invalid_argument / std::runtime_error with path and
// numbers before anything is trained; run() throws TrainingFailed.
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

  // Writes to `out`: config.json, metrics.jsonl, metrics.csv, quarantine.jsonl (and
  // quarantine_eval.jsonl of the last evaluation), receipt.json and checkpoints/, or
  // replica_I/checkpoints/ of each independent replica (train/checkpoint/checkpoint.h); until it
  // ends also lock.json, by which a second Trainer with the same folder fails.
  TrainResult run();
  // Makes run() finish the step, save and return, in all processes. Async-signal-safe.
  void request_stop() noexcept;
  const RunPlan& plan() const;    // the one that on_plan gets
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
