// Compares two runs of `stoker train` beyond their pixels: their configurations and their weights.
// Threads: any. Throws std::runtime_error with the path of a file that exists but cannot be read.
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
