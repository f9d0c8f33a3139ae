// What a run is asked for, made whole: wishes are checked, and what was left open ("one per core",
// "as the devices need it") becomes a number. Pure, but for the processes that are asked whether
// they agree. Errors: InvalidField naming the option.
#pragma once

#include "train/run/processes.h"
#include "train/train_types.h"

namespace stoker {

// `options` with every number that they leave open.
TrainOptions complete_options(TrainOptions options);
// What computes: the recipe's precision, or bf16 on GPUs where it names none.
Precision run_precision(const TrainOptions& options);
const MeasureHooks& measure_hooks(const TrainOptions& options);  // those given, or none
// Throws std::invalid_argument where the processes were not given the same.
void require_same_options(const TrainOptions& options, TrainProcesses& processes);

}  // namespace stoker
