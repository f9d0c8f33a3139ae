// How a run's global batch is cut: over all replicas, and in each into the micro-batches whose rows
// batch norm sees together. A value, computed from the options. Pure. Errors: InvalidField where
// the batch does not divide.
#pragma once

#include <string>
#include <vector>

#include "staging/batch_layout.h"
#include "train/train_types.h"

namespace stoker {

struct ReplicaShape {
  int all_replicas = 1;              // of all processes
  int rows = 0;                      // per replica and step
  int micro_batch_rows = 0;          // that batch norm sees together; rows is a multiple of it
  int engine_threads = 1;            // per replica
  std::vector<std::string> notes{};  // what the user should know
};

// REQUIRES: complete_options(); `processes` is how many share the batch.
ReplicaShape cut_batch(const TrainOptions& options, int processes);

// Of a replica's engine.
EngineOptions engine_options(const TrainOptions& options, const ReplicaShape& shape);
// Of a replica's batches on its device.
BatchShape batch_shape(const Recipe& recipe, int rows);

}  // namespace stoker
