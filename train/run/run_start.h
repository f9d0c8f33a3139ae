// Finds where a run starts: at the newest checkpoint or with the recipe's initial weights. Process
// 0 reads the state and sends it to the others, which need no access to its disk. Threads: one.
// Errors: std::invalid_argument for a checkpoint of another run; std::runtime_error if it cannot be
// read.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/initial_weights.h"
#include "train/run/processes.h"
#include "train/train_types.h"

namespace stoker {

// One of the models that a run trains: the one of all replicas, or that of an independent replica.
struct RunModel {
  std::string of;          // " of replica 3", in messages; "" for the one model
  std::string folder;      // of its checkpoints
  std::string checkpoint;  // the last one; "": there is none
  ModelProgress progress;
};

struct RunStart {
  CheckpointInfo progress;  // of the run; its ModelProgress is that of the first model
  // Initial states of this process's engines: one for all, or one for each.
  std::vector<TrainState> states;
  const TrainState& state_of(size_t replica) const {
    return states[states.size() == 1 ? 0 : replica];
  }
  std::vector<std::string> notes;  // for the user
};

// Makes the residuals of a checkpoint those of `replicas` that keep `floats` each (0: they keep
// nothing). What other numbers of replicas have lost, the first one adds to its own: a sum misses
// the same gradients as before. Returns what to tell the user, or "".
std::string fit_residuals(TrainState& state, int replicas, int64_t floats);

// Throws std::invalid_argument if the folder of a run that resumes has checkpoints of other
// replicas: `replica_models` independent replicas go on only as so many, others (0) never as these.
// Looks at names alone. For process 0, before anything is written.
void require_kept_replicas(const TrainOptions& options, int replica_models);

// Fills in progress and checkpoint of `models`, those of the run, in every process. `may_resume` if
// process 0 has checkpoints. `weights` may be null: the first ones are then random.
RunStart find_start(const TrainOptions& options, const ModelInfo& info, const Source& train,
                    std::vector<RunModel>& models, bool may_resume, const InitialWeights* weights,
                    TrainProcesses& processes);

}  // namespace stoker
