// Small training runs for tests: a synthetic source, a recipe that ends within seconds, and an
// observer that records its calls.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "pipeline/files/durable_file.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/support/fake_engine.h"
#include "tests/support/sanitizers.h"
#include "train/checkpoint/checkpoint.h"
#include "train/trainer.h"

namespace stoker {

// TBB is not instrumented: under ThreadSanitizer the feed runs inline.
inline constexpr int kFeedWorkers = kThreadSanitizer ? 0 : 1;

class RecordingObserver final : public TrainObserver {
 public:
  void on_plan(const RunPlan& whole) override { plan = whole.all(); }
  void on_step(const StepReport& report) override {
    steps.push_back(report);
    if (at_step) at_step(report);
  }
  void on_epoch(const EpochReport& report) override { epochs.push_back(report); }
  void on_message(const std::string& line) override { messages.push_back(line); }

  std::vector<std::string> plan, messages;
  std::vector<StepReport> steps;
  std::vector<EpochReport> epochs;
  std::function<void(const StepReport&)> at_step;
};

inline EngineFactory fake_engines(const FakeEngineFaults& faults = {}, int faulty_replica = 0) {
  return [=](const NetSpec& net, const EngineOptions& options, int replica) {
    return make_fake_engine(net, options, replica == faulty_replica ? faults : FakeEngineFaults{});
  };
}

// resnet20 at 16x16, global batch 16 in micro-batches of 2: works with 1, 2, 4 or 8 replicas.
inline TrainOptions small_options(int replicas = 1) {
  TrainOptions options;
  options.recipe = default_recipe("resnet20");
  options.recipe.set_input({16, 16});
  options.recipe.train.stages = StageList("resize | random_crop(padding=2) | flip");
  options.recipe.epochs = 3;
  options.recipe.batch = 16;
  options.recipe.micro_batch_size = 2;
  options.recipe.optimizer.lr_ref_batch = 16;
  options.recipe.precision = Precision::fp32;
  options.replicas = replicas;
  options.seed = 5;
  options.threads = 2;
  options.feed.workers = kFeedWorkers;
  options.log_interval = 1;
  return options;
}

inline std::unique_ptr<Source> small_source(int64_t samples = 70, uint64_t seed = 9) {
  return make_synthetic_source(samples, {16, 16}, 5, seed);
}

struct RunOutcome {
  TrainResult result;
  uint64_t hash = 0;
};

inline RunOutcome run_once(const TrainOptions& options, const EngineFactory& engines,
                           int64_t samples = 70, const Source* eval = nullptr) {
  const auto source = small_source(samples);
  RecordingObserver observer;
  Trainer trainer(*source, eval, options, observer, engines);
  const TrainResult result = trainer.run();
  return {result, trainer.weights_hash()};
}

// The newest checkpoint in a run's folder.
inline TrainState state_of_run(const std::string& out) {
  CheckpointInfo info;
  TrainState state;
  load_checkpoint(newest_checkpoint(checkpoint_folder(out)), info, state);
  return state;
}

// Returns the rows of one kind in a run's metrics.jsonl.
inline std::vector<nlohmann::json> metrics_of(const std::string& folder, const std::string& kind) {
  std::istringstream text(read_whole_file(folder + "/metrics.jsonl"));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(text, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["kind"] == kind) rows.push_back(row);
  }
  return rows;
}

}  // namespace stoker
