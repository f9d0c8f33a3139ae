#include "train/run/run_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "train/model/initialise.h"
#include "train/model/recipe_json.h"
#include "train/model/whitening.h"

namespace stoker {
namespace {

// The fields that a resumed run may change, named as in the JSON of a checkpoint. The other fields
// determine what was computed so far.
const std::vector<std::string>& may_change() {
  static const std::vector<std::string> fields = {"epochs",
                                                  "batch",
                                                  "rows_per_shard",
                                                  "eval_views",
                                                  "precision",
                                                  "schedule.warmup_epochs",
                                                  "schedule.warmup_steps"};
  return fields;
}

// Reads the newest checkpoint into `start`. Without a checkpoint only the notes change.
void resume(const TrainOptions& options, const ModelInfo& model, const std::string& runs,
            RunStart& start) {
  if (!options.resume || runs.empty()) return;
  std::string& resumed_from = start.resumed_from;
  CheckpointInfo& progress = start.progress;
  std::vector<std::string>& notes = start.notes;
  std::vector<std::string> torn;
  resumed_from = newest_checkpoint(runs, &torn);
  for (const std::string& each : torn) notes.push_back("torn checkpoint left aside: " + each);
  if (resumed_from.empty()) {
    notes.push_back("no checkpoint in " + runs + ": starting from the beginning");
    return;
  }
  load_checkpoint(resumed_from, progress, start.state);
  const auto refuse = [&](const std::string& difference) {
    throw std::invalid_argument(
        fmt::format("cannot resume from {}: this run has another {}", resumed_from, difference));
  };
  const std::string difference =
      recipe_difference(progress.model.recipe, options.recipe, may_change());
  if (!difference.empty()) refuse(difference);
  std::vector<std::string> changed = recipe_differences(progress.model.recipe, options.recipe);
  // TrainSetup says what another batch changes.
  std::erase_if(changed, [](const std::string& each) { return each.starts_with("batch: "); });
  if (!changed.empty()) {
    notes.push_back(fmt::format("changed since the checkpoint: {}", fmt::join(changed, ", ")));
  }
  if (progress.seed != options.seed) {
    refuse(fmt::format("seed: {} -> {}", progress.seed, options.seed));
  }
  if (progress.model.class_names != model.class_names) refuse("list of classes");
  progress.model = model;
}

TrainState initial_state(const TrainOptions& options, const NetSpec& net, const Source& train,
                         const InitialWeights* weights) {
  const Recipe& recipe = options.recipe;
  const InitOptions init{options.seed, recipe.zero_gamma};
  TrainState state;
  state.parameters = initial_parameters(net, init);
  state.statistics = initial_statistics(net);
  state.momenta.assign(state.parameters.size(), 0.0f);
  if (has_second_moments(recipe.optimizer.kind)) state.second_moments = state.momenta;
  if (weights) {
    weights->read(state);
  } else if (recipe.whitening) {
    const std::vector<float> filters = whitening_filters(
        patch_moments(train, recipe.eval, options.feed.decode), recipe.mean, recipe.stddev);
    const std::vector<TensorInfo> parameters = parameter_table(net);
    if (parameters.at(0).count != static_cast<int64_t>(filters.size())) {
      throw std::invalid_argument("whitening: the first tensor of " + net.name +
                                  " is not a (24, 3, 2, 2) convolution");
    }
    std::copy(filters.begin(), filters.end(), state.parameters.begin() + parameters[0].offset);
  }
  if (recipe.average.kind != AverageKind::none) {
    state.average = state.parameters;
    state.average_statistics = state.statistics;
  }
  return state;
}

}  // namespace

std::string fit_residuals(TrainState& state, int replicas, int64_t floats) {
  if (state.residuals.empty() ||
      (state.residual_replicas == replicas && floats > 0 &&
       state.residuals.size() ==
           static_cast<size_t>(floats) * (static_cast<size_t>(replicas) + 1))) {
    return "";
  }
  const int before = state.residual_replicas;
  const std::vector<float> kept = std::move(state.residuals);
  const size_t width = kept.size() / (static_cast<size_t>(before) + 1);
  state.residuals.clear();
  state.residual_replicas = 0;
  if (floats == 0) {
    return "what gradients had lost on the wire is left out: this run's --grad-wire keeps nothing";
  }
  if (width != static_cast<size_t>(floats)) {
    return fmt::format(
        "what gradients had lost on the wire is left out: the checkpoint has {} floats of each "
        "replica, this engine has {}",
        width, floats);
  }
  state.residuals.resize(width * (static_cast<size_t>(replicas) + 1));
  state.residual_replicas = replicas;
  for (int row = 0; row < before; ++row) {
    for (size_t i = 0; i < width; ++i) {
      state.residuals[i] += kept[static_cast<size_t>(row) * width + i];
    }
  }
  std::copy(kept.end() - static_cast<int64_t>(width), kept.end(),
            state.residuals.end() - static_cast<int64_t>(width));
  return fmt::format(
      "what gradients had lost on the wire of {} replicas is sent by the first of {}", before,
      replicas);
}

RunStart find_start(const TrainOptions& options, const ModelInfo& model, const Source& train,
                    const std::string& runs, const InitialWeights* weights,
                    TrainProcesses& processes) {
  RunStart start;
  start.progress.model = model;
  start.progress.seed = options.seed;
  if (processes.is_rank0()) {
    resume(options, model, runs, start);
    if (start.resumed_from.empty()) {
      start.state = initial_state(options, model.net(), train, weights);
      if (weights) start.notes.push_back(weights->describe());
    }
  }
  bool resumed = !start.resumed_from.empty();
  processes.share(start.progress, start.state, resumed);
  if (resumed && start.resumed_from.empty()) start.resumed_from = "the checkpoint of process 0";
  return start;
}

}  // namespace stoker
