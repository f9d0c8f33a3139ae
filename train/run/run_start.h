// Finds where a run starts: at the newest checkpoint, with the weights of another training, or with
// the recipe's initial weights. Process 0 reads the state and sends it to the others, which need no
// access to its disk. Threads: one. Errors: std::invalid_argument for a checkpoint of another run
// and for weights of another net; std::runtime_error if they cannot be read.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"
#include "train/run/processes.h"
#include "train/train_types.h"

namespace stoker {

// The weights with which a run begins, from another training: fine-tuning. Owner: TrainSetup.
class InitialWeights {
 public:
  // `path`: a safetensors file whose tensors have the names of `net` (torchvision's state_dict, or
  // a checkpoint's model.safetensors), or a folder as load_model() takes. Checks names and shapes,
  // but reads no values. If the file's heads have another number of outputs, all heads of the run
  // are new. Tensors "*.num_batches_tracked" are left aside.
  // Throws std::invalid_argument, with the path, if it is not of this net: a tensor is missing, one
  // has another shape, or one is left over.
  InitialWeights(const std::string& path, const NetSpec& net);

  // Overwrites parameters and statistics, but for those of new heads. Throws std::runtime_error if
  // the file cannot be read or a value is not finite.
  void read(TrainState& state) const;

  std::string describe() const;  // one line for the user

 private:
  void find_tensors(const std::vector<TensorInfo>& table, bool parameters);
  void check_left_over() const;

  struct Target {
    TensorInfo info;
    bool parameter = true;  // else a statistic
  };

  const NetSpec net_;
  const SafetensorsFile file_;
  const std::string path_;
  std::vector<Target> targets_;
  std::vector<std::string> new_tensors_;
  int64_t outputs_in_file_ = 0;  // of a head that is replaced
};

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
