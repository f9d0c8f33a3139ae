// Finds where a run starts: at the newest checkpoint or with the recipe's initial weights. Process
// 0 reads the state and sends it to the others, which need no access to its disk. Threads: one.
// Errors: std::invalid_argument for a checkpoint of another run; std::runtime_error if it cannot be
// read.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source/source.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/initial_weights.h"
#include "train/run/processes.h"
#include "train/train_types.h"

namespace stoker {

struct RunStart {
  CheckpointInfo progress;
  TrainState state;                // initial state of the engines
  std::string resumed_from;        // the checkpoint; "": a new run
  std::vector<std::string> notes;  // for the user
};

// Makes the residuals of a checkpoint those of `replicas` that keep `floats` each (0: they keep
// nothing). What other numbers of replicas have lost, the first one adds to its own: a sum misses
// the same gradients as before. Returns what to tell the user, or "".
std::string fit_residuals(TrainState& state, int replicas, int64_t floats);

// `runs` is the folder of checkpoints, or "" in processes that have none.
// `weights` may be null: the first ones are then random.
RunStart find_start(const TrainOptions& options, const ModelInfo& model, const Source& train,
                    const std::string& runs, const InitialWeights* weights,
                    TrainProcesses& processes);

}  // namespace stoker
