// Where a run starts: at the newest checkpoint or at the recipe's first weights. Process 0 finds
// out and tells the others, who need not see its disk. Threads: one. Errors: std::invalid_argument
// for a checkpoint of another run; std::runtime_error where it cannot be read.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source/source.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/processes.h"
#include "train/train_types.h"

namespace stoker {

struct RunStart {
  CheckpointInfo progress;
  TrainState state;                // of the engines there
  std::string resumed_from;        // the checkpoint; "": the run begins
  std::vector<std::string> notes;  // what the user should know
};

// `runs` is the folder of checkpoints, or "" in processes that have none.
RunStart find_start(const TrainOptions& options, const ModelInfo& model, const Source& train,
                    const std::string& runs, TrainProcesses& processes);

}  // namespace stoker
