// Checks the options of a run and fills in the values that were left open ("one per core", "as the
// devices need it"). Pure, except for require_same_options(), which communicates. Errors:
// InvalidField naming the option.
#pragma once

#include "train/run/processes.h"
#include "train/train_types.h"

namespace stoker {

// Returns `options` with all open values filled in.
TrainOptions complete_options(TrainOptions options);
// Returns the recipe's precision, or if it has none, bf16 on GPUs.
Precision run_precision(const TrainOptions& options);
// Returns how many replicas synchronise their batch norms, 1 if there is no other; 0: the option is
// off.
int synchronised_replicas(const TrainOptions& options);
const MeasureHooks& measure_hooks(const TrainOptions& options);  // of the options, or defaults
// Throws std::invalid_argument if the processes were given different options.
void require_same_options(const TrainOptions& options, TrainProcesses& processes);

}  // namespace stoker
