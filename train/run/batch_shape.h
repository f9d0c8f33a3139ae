// How a run's global batch is divided over all replicas, and within each replica into
// micro-batches, over whose rows batch norm computes its statistics; and the largest batch that
// fits (--batch auto). Values, computed from the options. Threads: any. Errors: InvalidField if the
// batch cannot be divided.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "staging/batch_layout.h"
#include "train/model/net_spec.h"
#include "train/train_types.h"

namespace stoker {

struct ReplicaShape {
  int all_replicas = 1;      // of all processes
  int rows = 0;              // per replica and part of a step
  int micro_batch_size = 0;  // `rows` is a multiple of it
  int engine_threads = 1;    // per replica
  int parts = 1;             // of a step, one after the other
  // The run trains one model, or `replica_models`: one of each replica, if they are independent.
  int replica_models = 0;
  int models = 1;                    // of the run
  int local_models = 1;              // of each process: the one, or those of its replicas
  int update_batch = 0;              // samples of a step that change the weights of a model
  std::vector<std::string> notes{};  // for the user
};

// `processes` is the number of processes that share the batch. REQUIRES: options from
// complete_options().
ReplicaShape cut_batch(const TrainOptions& options, int processes);

// Returns the options of a replica's engine.
EngineOptions engine_options(const TrainOptions& options, const ReplicaShape& shape);
// Returns the shape of a replica's batches on its device; a sample has `target_bytes` besides its
// label.
BatchShape batch_shape(const Recipe& recipe, int rows, int target_bytes);

// By which the largest batch is chosen that fits: the memory that an engine plans, and what is
// free.
struct BatchLimits {
  int64_t step = 1;          // rows come in multiples of this
  int64_t most_rows = 1;     // upper bound
  int64_t memory_bytes = 0;  // that may be used
  // Returns the bytes that `rows` need; increases with `rows`.
  std::function<int64_t(int64_t rows)> bytes;
  std::string memory_name;  // "80% of the 12.3 GiB that are free"
  std::string most_name;    // reason for most_rows: "the 50000 training samples"
};

struct BatchChoice {
  int64_t rows = 0;
  std::string reason;
};

// Throws std::runtime_error if not even the smallest batch fits, with the needed and the available
// bytes.
BatchChoice largest_batch(const BatchLimits& limits);

// Returns the free memory of the machine, or of this process's control group if that is less.
int64_t free_host_bytes();

struct BatchQuestion {
  const TrainOptions& options;  // from complete_options()
  const NetSpec& net;
  const EngineFactory& make_engine;  // or empty
  int64_t samples = 0;               // to train on
  int all_replicas = 1;              // that share the samples
  bool evaluates = false;            // the feed of the evaluation also needs memory
  int target_bytes = 0;              // of a sample, besides its label
};

// Returns the rows per device that fit into this process's memory; another process may have less.
// Throws as largest_batch() does.
BatchChoice choose_batch(const BatchQuestion& question);

}  // namespace stoker
