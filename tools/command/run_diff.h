// Holds two runs of `stoker train` against each other beyond their pixels: what was configured, and
// which weights came out. Threads: any. Errors: std::runtime_error with the path of a file that is
// there and cannot be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stoker {

struct SettingDifference {
  std::string name;  // "recipe.optimizer.learning_rate"
  nlohmann::json a, b;
};

// Of the config.json in two runs' folders.
struct ConfigDifference {
  std::string unknown;  // why nothing was compared; "" if it was
  // What decides which weights come out, and what does not: devices, threads, buffers, places.
  std::vector<SettingDifference> deciding, others;
  bool same() const { return deciding.empty(); }
};
ConfigDifference config_diff(const std::filesystem::path& a, const std::filesystem::path& b);

// Of model.safetensors in the newest checkpoint of a step that both runs have.
struct WeightDifference {
  std::string unknown;  // why nothing was compared; "" if it was
  int64_t step = -1;
  std::string hash_a, hash_b;  // FNV-1a of the files, as their checkpoints record it
  bool same() const { return hash_a == hash_b; }
};
WeightDifference weight_diff(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace stoker
