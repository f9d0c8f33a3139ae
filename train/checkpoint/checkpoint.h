// A run's state on disk, free of how many devices made it. A checkpoint is a folder:
//   model.safetensors  the weights to use (averaged, if the recipe averages) with PyTorch's names;
//                      its metadata holds recipe and class names, so it is complete by itself
//   state.safetensors  what training goes on from: raw parameters, momenta, averages, statistics
//   trainer.json       step, loader state, recipe, seed, metrics, and the sizes and checksums of
//                      both files
// It is written under a temporary name, flushed, renamed; a folder that fails its checks is torn
// and never used. Threads: one writer per folder. Errors: std::runtime_error with the path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/loader_types.h"
#include "train/engine/engine.h"
#include "train/model/recipe.h"

namespace stoker {

// What a model is, apart from its weights.
struct ModelInfo {
  Recipe recipe;
  int classes = 0;
  std::vector<std::string> class_names;
  NetSpec net() const;  // throws std::invalid_argument
};

// Of an epoch under way, so that its report is whole after a resume.
struct RunningTotals {
  double loss_sum = 0, weight_sum = 0, top1 = 0;
  double seconds = 0;
};

struct CheckpointInfo {
  ModelInfo model;
  uint64_t seed = 0;
  int64_t step = 0;  // steps done, over all epochs
  int64_t total_steps = 0;
  LoaderState loader;
  RunningTotals epoch;
  double best_top1 = 0;
  double last_top1 = -1, last_top5 = -1;  // of the last evaluation; -1: none
};

// Flat buffers as Engine::read gives them. The averages are empty if the recipe does not average.
struct TrainState {
  std::vector<float> parameters, momenta, statistics, average, average_statistics;
};

// Writes runs/step_00000123 and runs/latest (its name), then removes all but the newest `keep`.
// `runs` is made if needed. Returns the checkpoint's path. Throws std::runtime_error, also if a
// number of the state is not finite: a checkpoint is always good to go on from.
std::string save_checkpoint(const std::string& runs, const CheckpointInfo& info,
                            const TrainState& state, int keep);

// The newest whole checkpoint of `runs`, "" if there is none. Names of torn ones, newest first, are
// appended to `torn`.
std::string newest_checkpoint(const std::string& runs, std::vector<std::string>* torn = nullptr);
// Reads everything and checks it. Throws std::runtime_error.
void load_checkpoint(const std::string& path, CheckpointInfo& info, TrainState& state);

// For using a model: `path` is a checkpoint, its model.safetensors, a folder of checkpoints or a
// run's folder (the newest).
struct LoadedModel {
  std::string file;  // that was read
  ModelInfo info;
  std::vector<float> parameters, statistics;
};
LoadedModel load_model(const std::string& path);

// Takes the state from an engine, and gives it one.
TrainState read_state(const Engine& engine, const AverageSpec& average);
void write_state(const TrainState& state, Engine& engine);
int64_t state_bytes(const TrainState& state);  // its memory
// FNV-1a 64 over parameters and statistics.
uint64_t state_hash(const TrainState& state);

}  // namespace stoker
