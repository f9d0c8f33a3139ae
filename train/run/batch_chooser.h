// --batch auto: chooses the largest batch that fits on a run's devices, from the memory that an
// engine plans and the memory that is free. Threads: any. Errors: std::runtime_error if not even
// the smallest batch fits, with the needed and the available bytes.
#pragma once

#include "train/model/net_spec.h"
#include "train/run/batch_size.h"
#include "train/train_types.h"

namespace stoker {

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
BatchChoice choose_batch(const BatchQuestion& question);

}  // namespace stoker
