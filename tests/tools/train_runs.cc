#include "tests/tools/train_runs.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

namespace stoker {

void TrainRuns::SetUpTestSuite() {
  data_ = std::make_unique<TempFolder>();
  make_small_shapes(data_->path());
}

std::vector<std::string> TrainRuns::command(const std::string& name, int epochs) const {
  return {STOKER_PROGRAM,  "train",
          "--data",        data(),
          "--model",       "airnet-narrow",
          "--batch",       "4",
          "--micro-batch", "2",
          "--last-batch",  "pad",
          "--eval-every",  "0",
          "--seed",        "7",
          "--precision",   "fp32",
          "--epochs",      std::to_string(epochs),
          "--out",         run_folder(name)};
}

std::vector<std::string> TrainRuns::with(std::vector<std::string> words,
                                         const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string TrainRuns::weights(const std::string& name, int step, const std::string& file) const {
  char folder[32];
  std::snprintf(folder, sizeof folder, "step_%08d", step);
  return read_text(run_folder(name) + "/checkpoints/" + folder + "/" + file + ".safetensors");
}

int count_metrics(const std::string& run_folder, const std::string& kind) {
  std::istringstream rows(read_text(run_folder + "/metrics.jsonl"));
  int count = 0;
  for (std::string line; std::getline(rows, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    count += row.is_object() && row.value("kind", "") == kind;
  }
  return count;
}

}  // namespace stoker
