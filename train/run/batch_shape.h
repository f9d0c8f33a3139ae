// How a run's global batch is divided over all replicas, and within each replica into
// micro-batches, over whose rows batch norm computes its statistics. A value, computed from the
// options. Pure. Errors: InvalidField if the batch cannot be divided.
#pragma once

#include <string>
#include <vector>

#include "staging/batch_layout.h"
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

}  // namespace stoker
