// --batch auto: chooses the largest batch that fits on a run's devices, from the memory that an
// engine plans and the memory that is free. Threads: any. Errors: std::runtime_error if not even
// the smallest batch fits, with the needed and the available bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "train/model/net_spec.h"
#include "train/train_types.h"

namespace stoker {

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
BatchChoice choose_batch(const BatchQuestion& question);

}  // namespace stoker
