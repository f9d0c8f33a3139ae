#include "train/run/run_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "train/model/initialise.h"
#include "train/model/recipe_json.h"
#include "train/model/whitening.h"
#include "train/run/options.h"

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

std::string replicas_text(int replica_models) {
  return replica_models > 0 ? fmt::format("{} independent replicas", replica_models)
                            : "replicas that train one model";
}

// Finds the newest checkpoint, or one for each model, of the same step. Without any only the notes
// change. Throws if there are some and none is whole: steps that were made are not thrown away
// without a word.
std::vector<std::string> find_checkpoints(const TrainOptions& options,
                                          const std::vector<RunModel>& models,
                                          std::vector<std::string>& notes) {
  if (!options.resume) return {};
  std::vector<std::string> folders, torn;
  for (const RunModel& model : models) folders.push_back(model.folder);
  std::vector<std::string> found = newest_checkpoints(folders, &torn);
  if (found.empty() && !torn.empty()) {
    throw std::runtime_error(fmt::format(
        "cannot resume: no checkpoint in {} is whole: {}; to begin anew, take another --out or "
        "remove that folder",
        folders.front(), fmt::join(torn, "; ")));
  }
  for (const std::string& each : torn) notes.push_back("torn checkpoint left aside: " + each);
  if (found.empty()) {
    notes.push_back("no checkpoint in " + folders.front() + ": starting from the beginning");
  }
  return found;
}

// Reads the checkpoint of a model of the run. The first one's is also the run's. Throws if it is of
// another run.
TrainState resume(const TrainOptions& options, RunModel& own, RunStart& start) {
  const std::string& path = own.checkpoint;
  CheckpointInfo progress;
  TrainState state;
  load_checkpoint(path, progress, state);
  const auto refuse = [&](const std::string& difference) {
    throw std::invalid_argument(
        fmt::format("cannot resume from {}: this run has another {}", path, difference));
  };
  const std::string difference =
      recipe_difference(progress.model.recipe, options.recipe, may_change());
  if (!difference.empty()) refuse(difference);
  if (progress.seed != options.seed) {
    refuse(fmt::format("seed: {} -> {}", progress.seed, options.seed));
  }
  const ModelInfo& model = start.progress.model;
  if (progress.model.class_names != model.class_names || progress.model.target != model.target) {
    refuse("list of classes");
  }
  const auto [replicas, replica] = std::pair(own.progress.replicas, own.progress.replica);
  if (progress.replicas != replicas || progress.replica != replica) {
    refuse(fmt::format("place among its replicas: {} of {} -> {} of {}", progress.replica,
                       replicas_text(progress.replicas), replica, replicas_text(replicas)));
  }
  const int norms = synchronised_replicas(options);
  if ((progress.norm_replicas > 0) != (norms > 0)) {
    const auto word = [](int count) { return count > 0 ? "on" : "off"; };
    refuse(fmt::format("sync_batch_norm: {} -> {}", word(progress.norm_replicas), word(norms)));
  }
  own.progress = progress;
  if (replica > 0) return state;
  std::vector<std::string> changed = recipe_differences(progress.model.recipe, options.recipe);
  // TrainSetup says what another batch changes.
  std::erase_if(changed, [](const std::string& each) { return each.starts_with("batch: "); });
  if (!progress.grad_wire.empty() && progress.grad_wire != start.progress.grad_wire) {
    changed.push_back(
        fmt::format("grad_wire: {} -> {}", progress.grad_wire, start.progress.grad_wire));
  }
  if (progress.accumulate > 0 && progress.accumulate != options.accumulate) {
    changed.push_back(fmt::format("accumulate: {} -> {}", progress.accumulate, options.accumulate));
  }
  if (!changed.empty()) {
    start.notes.push_back(
        fmt::format("changed since the checkpoint: {}", fmt::join(changed, ", ")));
  }
  if (progress.norm_replicas != norms) {
    start.notes.push_back(
        fmt::format("batch norms see the samples of {} replicas together, before the checkpoint {}",
                    norms, progress.norm_replicas));
  }
  progress.model = model;
  progress.norm_replicas = norms;
  progress.grad_wire = start.progress.grad_wire;
  progress.accumulate = start.progress.accumulate;
  start.progress = progress;
  return state;
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

void require_kept_replicas(const TrainOptions& options, int replica_models) {
  if (!options.resume || options.out.empty()) return;
  const int kept = kept_replicas(options.out);
  const bool other = replica_models > 0 && has_checkpoints(checkpoint_folder(options.out));
  if (!other && (kept == 0 || kept == replica_models)) return;
  throw std::invalid_argument(fmt::format(
      "cannot resume from {}: it holds the checkpoints of {}, and this run has {}; go on as they "
      "began, or begin another run with --init",
      options.out, replicas_text(other ? 0 : kept), replicas_text(replica_models)));
}

RunStart find_start(const TrainOptions& options, const ModelInfo& info, const Source& train,
                    std::vector<RunModel>& models, bool may_resume, const InitialWeights* weights,
                    TrainProcesses& processes) {
  RunStart start;
  start.progress.model = info;
  start.progress.seed = options.seed;
  start.progress.norm_replicas = synchronised_replicas(options);
  start.progress.grad_wire = to_string(options.grad_wire);
  start.progress.accumulate = options.accumulate;
  std::vector<std::string> found;
  if (processes.is_rank0() && may_resume) found = find_checkpoints(options, models, start.notes);
  const bool resumed = processes.all_reduce_any(!found.empty());
  // Process 0 reads one state after the other; each stays with the process that trains its model.
  const size_t local = std::max(models.size() / static_cast<size_t>(processes.size()), size_t{1});
  const size_t states = resumed ? models.size() : 1;
  for (size_t i = 0; i < states; ++i) {
    TrainState state;
    if (resumed) models[i].checkpoint = found.empty() ? "the checkpoint of process 0" : found[i];
    if (!found.empty()) {
      state = resume(options, models[i], start);
    } else if (processes.is_rank0()) {
      state = initial_state(options, info.net(), train, weights);
      if (weights) start.notes.push_back(weights->describe());
    }
    processes.share(models[i].progress);
    processes.share(state);
    if (states == 1 || static_cast<int>(i / local) == processes.rank()) {
      start.states.push_back(std::move(state));
    }
  }
  processes.share(start.progress);
  static_cast<ModelProgress&>(start.progress) = models.front().progress;
  return start;
}

namespace {

std::string file_of(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    throw std::invalid_argument("init: " + path + ": No such file or directory");
  }
  return std::filesystem::is_directory(path) ? load_model(path).file : path;
}

}  // namespace

InitialWeights::InitialWeights(const std::string& path, const NetSpec& net)
    : net_(net), file_(file_of(path)), path_(path) {
  find_tensors(parameter_table(net_), true);
  find_tensors(statistics_table(net_), false);
  check_left_over();
}

void InitialWeights::find_tensors(const std::vector<TensorInfo>& table, bool parameters) {
  for (const TensorInfo& info : table) {
    const auto found = file_.tensors().find(info.name);
    if (found == file_.tensors().end()) {
      throw std::invalid_argument(
          fmt::format("init: {}: it has no tensor {}, which {} has; it holds {} "
                      "tensors, not those of this model",
                      path_, info.name, net_.name, file_.tensors().size()));
    }
    const StoredTensor& stored = found->second;
    const bool head = parameters && net_.nodes[info.node].kind == OpKind::linear;
    const bool only_outputs_differ =
        stored.shape.size() == info.shape.size() && !stored.shape.empty() &&
        std::equal(stored.shape.begin() + 1, stored.shape.end(), info.shape.begin() + 1);
    if (head && only_outputs_differ && stored.shape[0] != info.shape[0]) {
      new_tensors_.push_back(info.name);
      outputs_in_file_ = stored.shape[0];
      continue;
    }
    if (stored.dtype != "F32" || stored.shape != info.shape) {
      throw std::invalid_argument(fmt::format(
          "init: {}: its {} is {} [{}], but {} has F32 [{}]", path_, info.name, stored.dtype,
          fmt::join(stored.shape, ", "), net_.name, fmt::join(info.shape, ", ")));
    }
    targets_.push_back({info, parameters});
  }
}

void InitialWeights::check_left_over() const {
  std::set<std::string> known(new_tensors_.begin(), new_tensors_.end());
  for (const Target& target : targets_) known.insert(target.info.name);
  for (const auto& [name, tensor] : file_.tensors()) {
    if (known.contains(name) || name.ends_with(".num_batches_tracked")) continue;
    throw std::invalid_argument(
        fmt::format("init: {}: its tensor {} has no place in {}", path_, name, net_.name));
  }
}

void InitialWeights::read(TrainState& state) const {
  for (const Target& target : targets_) {
    std::vector<float>& flat = target.parameter ? state.parameters : state.statistics;
    const std::span<float> values = std::span(flat).subspan(static_cast<size_t>(target.info.offset),
                                                            static_cast<size_t>(target.info.count));
    file_.read(target.info.name, target.info.shape, values);
    if (std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) continue;
    throw std::runtime_error(
        fmt::format("{}: its {} has a value that is not finite", path_, target.info.name));
  }
}

std::string InitialWeights::describe() const {
  std::string text = fmt::format("{} tensors from {}", targets_.size(), path_);
  if (!new_tensors_.empty()) {
    text += fmt::format("; {} {} new, for {} outputs instead of {}", fmt::join(new_tensors_, ", "),
                        new_tensors_.size() == 1 ? "is" : "are", net_.classes, outputs_in_file_);
  }
  return "initial weights: " + text;
}

}  // namespace stoker
