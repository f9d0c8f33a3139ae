// --batch auto: the largest batch that the devices of a run hold, from what an engine says that it
// takes and what is free. Threads: any. Errors: std::runtime_error if not even the smallest batch
// fits, with what it takes and what there is.
#pragma once

#include "train/model/net_spec.h"
#include "train/run/batch_size.h"
#include "train/train_types.h"

namespace stoker {

struct BatchQuestion {
  const TrainOptions& options;  // complete_options()
  const NetSpec& net;
  const EngineFactory& make_engine;  // or empty
  int64_t samples = 0;               // to train on
  int all_replicas = 1;              // which share them
  bool evaluates = false;            // a second feed takes memory of its own
};

// Rows per device, as this process's memory allows; another process may have less.
BatchChoice choose_batch(const BatchQuestion& question);

}  // namespace stoker
