// The folder of a run of `stoker train`: the data that its config.json names, and how two runs
// differ. Threads: any. Errors: std::runtime_error with the path of a file that is there and cannot
// be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/option/sample_choice.h"
#include "train/train_types.h"

namespace stoker {

struct RunSamples {
  DataOptions data;
  SampleChoice choice;  // neither it nor `data` names data: config.json does not say where they are
  int64_t limit = 0;    // TrainOptions::limit_train
  std::string subset;   // ChosenSamples::subset
  std::string order;    // SampleOrder::describe(); "": every sample once, shuffled
};
RunSamples read_run_samples(const std::filesystem::path& run);
// Opens the training data that config.json names. Throws std::runtime_error with the path if it
// names none.
ChosenSamples open_run_samples(const std::filesystem::path& run, const RunSamples& samples);
// The options of the run that decide what it was fed and what it computed, but for its order; with
// all replicas of all processes in one.
TrainOptions read_run_options(const std::filesystem::path& run);

struct NamedSample {
  std::string name;     // as Source::name(); "": it cannot be told
  std::string problem;  // why not
};
// Names the sample in which two receipts differ, after opening the data of the first run again.
// `a` and `b` are the runs' folders or the receipt.json in them. There is no name if the data are
// not the same any more, or if the runs were fed from different ones. Does not throw.
NamedSample name_sample(const std::filesystem::path& a, const std::filesystem::path& b,
                        int64_t sample);

// Compares two runs of `stoker train` beyond their pixels: their configurations and their weights.
// Threads: any. Throws std::runtime_error with the path of a file that exists but cannot be read.
struct SettingDifference {
  std::string name;  // "recipe.optimizer.learning_rate"
  nlohmann::json a, b;
};

// The differences between the config.json files of two runs.
struct ConfigDifference {
  std::string unknown;  // why nothing was compared; "" if it was
  // Settings that decide which weights come out, and settings that do not: devices, threads,
  // buffers, paths.
  std::vector<SettingDifference> deciding, others;
  bool same() const { return deciding.empty(); }
};
ConfigDifference config_diff(const std::filesystem::path& a, const std::filesystem::path& b);

// Compares model.safetensors in the newest checkpoint of a step that both runs have; of independent
// replicas, that of each.
struct WeightDifference {
  std::string unknown;  // why nothing was compared; "" if it was
  int64_t step = -1;
  // FNV-1a of the files, as their checkpoints record it; a space is between those of replicas.
  std::string hash_a, hash_b;
  bool same() const { return hash_a == hash_b; }
};
WeightDifference weight_diff(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace stoker
