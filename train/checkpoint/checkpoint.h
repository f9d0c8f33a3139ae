// A run's state on disk, independent of the number of devices. A checkpoint is a folder:
//   model.safetensors  the weights to use (averaged, if the recipe averages) with PyTorch's names;
//                      its metadata holds recipe and class names, so it is complete by itself
//   state.safetensors  the state to resume from: raw parameters, momenta, second moments,
//                      averages, statistics, and what gradients lost on the wire
//   trainer.json       step, loader state, recipe, seed, metrics, and the sizes and checksums of
//                      both files
// It is written under a temporary name, flushed and renamed. A folder that fails its checks is torn
// and never used.
//
// A run of one model has its checkpoints in OUT/checkpoints. A run of independent replicas has
// those of replica I in OUT/replica_I/checkpoints, and goes on from the newest step of which all
// are whole. Threads: one writer per folder. Errors: std::runtime_error with the path.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/loader_types.h"
#include "train/engine/engine.h"
#include "train/model/recipe.h"

namespace stoker {

// A model without its weights.
struct ModelInfo {
  Recipe recipe;
  int classes = 0;
  std::vector<std::string> class_names;
  std::string target{};  // that it learns instead of a label, with a binary loss; "": the label
  // Name of a sample's target in a batch.
  int target_bytes() const { return target.empty() ? 0 : classes * int{sizeof(float)}; }
  NetSpec net() const;  // throws std::invalid_argument
};

// Totals of an unfinished epoch, so that its report is complete after a resume.
struct RunningTotals {
  double loss_sum = 0, weight_sum = 0, top1 = 0;
  double seconds = 0;
};

// How far a model of a run has come, besides its state.
struct ModelProgress {
  RunningTotals epoch;
  double best_top1 = 0;
  double last_top1 = -1, last_top5 = -1;  // of the last evaluation; -1: none
  // Which of how many independent replicas trains it; 0: all replicas of the run do.
  int replicas = 0, replica = 0;
};

struct CheckpointInfo : ModelProgress {
  ModelInfo model;
  uint64_t seed = 0;
  int64_t step = 0;  // updates done; the loader's steps, but for a run that changed its batch
  int64_t total_steps = 0;
  LoaderState loader;
  int batch = 0;  // global batch that `loader` is of; not stored, because the recipe has it
  // The number of replicas whose batch norms were synchronised; 0: TrainOptions::sync_batch_norm
  // was off.
  int norm_replicas = 0;
  // How gradients travelled, by the name in kGradWires, and in how many parts a replica took its
  // samples of a step. "" and 0: an older version wrote the checkpoint.
  std::string grad_wire{};
  int accumulate = 0;
};

// Flat buffers as Engine::read() fills them. The averages are empty if the recipe does not average,
// the second moments if its optimizer has none.
struct TrainState {
  std::vector<float> parameters, momenta, statistics, average, average_statistics, second_moments;
  // The losses of so many replicas' gradients on the wire, which are still to be sent: a row for
  // each, by rank, and one for their sum (WireState). Empty if nothing is kept.
  std::vector<float> residuals;
  int residual_replicas = 0;
};
inline constexpr std::vector<float> TrainState::*kStateBuffers[] = {
    &TrainState::parameters, &TrainState::momenta,    &TrainState::second_moments,
    &TrainState::average,    &TrainState::statistics, &TrainState::average_statistics,
    &TrainState::residuals};

// Returns the folder of the checkpoints of a model of a run in `out`: of independent replica
// `replica`, or of the one model (-1).
std::string checkpoint_folder(const std::string& out, int replica = -1);
// Returns of how many independent replicas there are checkpoints in `out`; 0: there are none.
int kept_replicas(const std::string& out);
// Returns whether there are checkpoints in this folder, whole or torn.
bool has_checkpoints(const std::string& runs);

// Writes runs/step_00000123 and runs/latest (its name). Creates `runs` if needed. Returns the
// checkpoint's path. Throws std::runtime_error, also if a value of the state is not finite, so that
// a run can resume from every checkpoint.
std::string write_checkpoint(const std::string& runs, const CheckpointInfo& info,
                             const TrainState& state);
// Removes all checkpoints but that of `step`, which was written last, and the newest before it,
// `keep` in all.
void remove_old_checkpoints(const std::string& runs, int64_t step, int keep);
// Does both.
std::string save_checkpoint(const std::string& runs, const CheckpointInfo& info,
                            const TrainState& state, int keep);

// The progress that the newest checkpoint of `runs` has, without a look at its state; nullopt:
// there is none.
std::optional<CheckpointInfo> newest_progress(const std::string& runs);
// Returns the newest complete checkpoint of `runs`, or "". Appends the paths of torn ones and what
// is wrong with them to `torn`, newest first.
std::string newest_checkpoint(const std::string& runs, std::vector<std::string>* torn = nullptr);
// Returns the checkpoints of the newest step of which all folders have a complete one, or nothing;
// of no step after `last_step`.
std::vector<std::string> newest_checkpoints(
    const std::vector<std::string>& folders, std::vector<std::string>* torn = nullptr,
    int64_t last_step = std::numeric_limits<int64_t>::max());
// Reads and checks a whole checkpoint. Throws std::runtime_error.
void load_checkpoint(const std::string& path, CheckpointInfo& info, TrainState& state);

// A model to use. load_model() takes the path of a checkpoint, of its model.safetensors, of a
// folder of checkpoints or of a run's folder (the last two: the newest checkpoint). Independent
// replicas are models of their own: it takes OUT/replica_I like a run's folder, and refuses OUT.
struct LoadedModel {
  std::string file;  // the file that was read
  ModelInfo info;
  std::vector<float> parameters, statistics;
};
LoadedModel load_model(const std::string& path);

// Copy the state out of an engine and into one.
TrainState read_state(const Engine& engine, const Recipe& recipe);
void write_state(const TrainState& state, Engine& engine);
int64_t state_bytes(const TrainState& state);  // in memory
// Returns the FNV-1a 64 hash of parameters and statistics.
uint64_t state_hash(const TrainState& state);

}  // namespace stoker
