#include "train/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "pipeline/files/durable_file.h"
#include "pipeline/files/json_file.h"
#include "train/checkpoint/checksum.h"
#include "train/checkpoint/json.h"
#include "train/checkpoint/safetensors.h"
#include "train/model/models.h"
#include "train/model/recipe_json.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMaxSavedReplicas = 1 << 28;
constexpr char kPrefix[] = "step_";
constexpr char kTemporary[] = ".tmp-";
constexpr char kReplica[] = "replica_";
constexpr char kResiduals[] = "residuals";
constexpr const char* kFiles[] = {"model.safetensors", "state.safetensors"};

std::string_view float_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// The parts of a state that an engine has, in the order of their tensors in state.safetensors.
struct StatePart {
  const char* prefix;  // of its tensors' names
  StateKind kind;
  std::vector<float> TrainState::*values;
  bool of_statistics = false;  // it has a value for each of statistics_table(), not of parameters
};
constexpr StatePart kStateParts[] = {
    {"parameters/", StateKind::parameters, &TrainState::parameters},
    {"momenta/", StateKind::momenta, &TrainState::momenta},
    {"second_moments/", StateKind::second_moments, &TrainState::second_moments},
    {"average/", StateKind::average, &TrainState::average},
    {"statistics/", StateKind::statistics, &TrainState::statistics, true},
    {"average_statistics/", StateKind::average_statistics, &TrainState::average_statistics, true},
};

std::vector<TensorInfo> table_of(const StatePart& part, const NetSpec& net) {
  return part.of_statistics ? statistics_table(net) : parameter_table(net);
}

bool has_part(const StatePart& part, const Recipe& recipe) {
  switch (part.kind) {
    case StateKind::second_moments:
      return has_second_moments(recipe.optimizer.kind);
    case StateKind::average:
    case StateKind::average_statistics:
      return recipe.average.kind != AverageKind::none;
    default:
      return true;
  }
}

// Appends one view per tensor of the table.
void append_views(const std::string& prefix, const std::vector<TensorInfo>& table,
                  const std::vector<float>& values, std::vector<TensorView>& views) {
  if (values.empty()) return;
  for (const TensorInfo& tensor : table) {
    views.push_back({prefix + tensor.name, tensor.shape,
                     std::span(values).subspan(static_cast<size_t>(tensor.offset),
                                               static_cast<size_t>(tensor.count))});
  }
}

std::vector<float> read_table(const SafetensorsFile& file, const std::string& prefix,
                              const std::vector<TensorInfo>& table) {
  // Checked first, so that a recipe with terabytes of tensors fails before they are allocated.
  for (const TensorInfo& tensor : table) file.find(prefix + tensor.name, tensor.shape);
  std::vector<float> values(static_cast<size_t>(total_count(table)));
  for (const TensorInfo& tensor : table) {
    file.read(prefix + tensor.name, tensor.shape,
              std::span(values).subspan(static_cast<size_t>(tensor.offset),
                                        static_cast<size_t>(tensor.count)));
  }
  return values;
}

void write_model(const std::string& path, const ModelInfo& info, const TrainState& state) {
  const NetSpec net = info.net();
  const bool averaged = !state.average.empty();
  std::vector<TensorView> views;
  append_views("", parameter_table(net), averaged ? state.average : state.parameters, views);
  append_views("", statistics_table(net), averaged ? state.average_statistics : state.statistics,
               views);
  TensorMetadata metadata = {{"format", "pt"},
                             {"recipe", recipe_to_json(info.recipe).dump()},
                             {"classes", std::to_string(info.classes)},
                             {"class_names", Json(info.class_names).dump()}};
  if (!info.target.empty()) metadata["target"] = Json(info.target).dump();
  write_safetensors(path, views, metadata);
}

void write_train_state(const std::string& path, const NetSpec& net, const TrainState& state) {
  std::vector<TensorView> views;
  for (const StatePart& part : kStateParts) {
    append_views(part.prefix, table_of(part, net), state.*part.values, views);
  }
  if (!state.residuals.empty()) {
    const int64_t rows = state.residual_replicas + int64_t{1};
    views.push_back(
        {kResiduals, {rows, static_cast<int64_t>(state.residuals.size()) / rows}, state.residuals});
  }
  write_safetensors(path, views, {});
}

void read_residuals(const SafetensorsFile& file, TrainState& state) {
  if (!file.has(kResiduals)) return;
  const std::vector<int64_t> shape = file.tensors().at(kResiduals).shape;
  if (shape.size() != 2 || shape[0] < 2 || shape[0] > kMaxSavedReplicas + 1) {
    throw std::runtime_error("residuals of another shape than (replicas + 1, floats)");
  }
  file.find(kResiduals, shape);
  state.residuals.resize(static_cast<size_t>(shape[0] * shape[1]));
  file.read(kResiduals, shape, state.residuals);
  state.residual_replicas = static_cast<int>(shape[0]) - 1;
}

// Returns what trainer.json stores for a file: its size and checksum.
Json seal_of(const fs::path& file) {
  uint64_t bytes = 0, hash = fnv1a({});
  read_pieces(file.string(), [&](std::string_view piece) {
    bytes += piece.size();
    hash = fnv1a(piece, hash);
  });
  return {{"bytes", bytes}, {"fnv1a", to_hex(hash)}};
}

// Returns what a folder's trainer.json says. Throws if it says less than it must, or a file's size
// or checksum differs from what it says.
CheckpointInfo checked_info(const fs::path& folder) {
  return read_json_file<Json>((folder / "trainer.json").string(), [&folder](const Json& json) {
    for (const char* name : kFiles) {
      if (json.at("files").at(name) != seal_of(folder / name)) {
        throw std::runtime_error("it has another size or checksum of " + std::string(name) +
                                 ", so one of them is damaged");
      }
    }
    return checkpoint_from_json(json);
  });
}

// Returns the folders of checkpoints and their steps, newest first.
std::vector<std::pair<int64_t, fs::path>> list_checkpoints(const std::string& runs) {
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const std::string digits = name.substr(std::strlen(kPrefix));
    if (digits.empty() || digits.size() > 18 ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    found.emplace_back(std::stoll(digits), entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void remove_temporaries(const fs::path& runs) {
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(runs)) {
    if (entry.path().filename().string().starts_with(kTemporary)) left.push_back(entry.path());
  }
  for (const fs::path& path : left) fs::remove_all(path);
}

void check_finite(const TrainState& state, int64_t step) {
  for (const auto buffer : kStateBuffers) {
    if (!std::ranges::all_of(state.*buffer, [](float v) { return std::isfinite(v); })) {
      throw std::runtime_error(
          fmt::format("the state after {} steps holds numbers that are not finite; no checkpoint "
                      "is written of it",
                      step));
    }
  }
}

}  // namespace

NetSpec ModelInfo::net() const {
  NetSpec net = make_net(recipe.name, recipe.input, classes);
  if (!target.empty()) net.loss = LossKind::binary;
  return net;
}

std::string checkpoint_folder(const std::string& out, int replica) {
  return (replica < 0 ? out : fmt::format("{}/{}{}", out, kReplica, replica)) + "/checkpoints";
}

bool has_checkpoints(const std::string& runs) { return !list_checkpoints(runs).empty(); }

int kept_replicas(const std::string& out) {
  int count = 0;
  while (has_checkpoints(checkpoint_folder(out, count))) ++count;
  return count;
}

std::string write_checkpoint(const std::string& runs, const CheckpointInfo& info,
                             const TrainState& state) {
  check_finite(state, info.step);
  fs::create_directories(runs);
  remove_temporaries(runs);
  const std::string name = fmt::format("{}{:08}", kPrefix, info.step);
  const fs::path temporary = fs::path(runs) / (kTemporary + name);
  const fs::path final_path = fs::path(runs) / name;
  fs::create_directory(temporary);

  write_model((temporary / kFiles[0]).string(), info.model, state);
  write_train_state((temporary / kFiles[1]).string(), info.model.net(), state);
  Json json = checkpoint_to_json(info);
  for (const char* file : kFiles) json["files"][file] = seal_of(temporary / file);
  const std::string text = json.dump(1) + "\n";
  const std::string_view piece = text;
  write_flushed((temporary / "trainer.json").string(), {&piece, 1});
  flush_folder(temporary.string());

  if (fs::exists(final_path)) {  // left by a run that resumed from an earlier step
    fs::rename(final_path, fs::path(runs) / (kTemporary + name + "-old"));
  }
  publish(temporary.string(), final_path.string());
  replace_file((fs::path(runs) / "latest").string(), name + "\n");
  remove_temporaries(runs);
  return final_path.string();
}

// Checkpoints of later steps are torn, or those of a run that went on from an earlier one. A folder
// is renamed before it is removed, so that half a folder never looks like a checkpoint.
void remove_old_checkpoints(const std::string& runs, int64_t step, int keep) {
  int kept = 0;
  for (const auto& [other, path] : list_checkpoints(runs)) {
    if (other <= step && kept < std::max(keep, 1)) {
      ++kept;
      continue;
    }
    const fs::path doomed = fs::path(runs) / (kTemporary + path.filename().string() + "-old");
    fs::rename(path, doomed);
    fs::remove_all(doomed);
  }
}

std::string save_checkpoint(const std::string& runs, const CheckpointInfo& info,
                            const TrainState& state, int keep) {
  const std::string path = write_checkpoint(runs, info, state);
  remove_old_checkpoints(runs, info.step, keep);
  return path;
}

std::string newest_checkpoint(const std::string& runs, std::vector<std::string>* torn) {
  const std::vector<std::string> found = newest_checkpoints({runs}, torn);
  return found.empty() ? "" : found.front();
}

std::optional<CheckpointInfo> newest_progress(const std::string& runs) {
  for (const auto& [step, path] : list_checkpoints(runs)) {
    const fs::path file = path / "trainer.json";
    if (!fs::exists(file)) continue;
    return read_json_file<Json>(file.string(),
                                [](const Json& json) { return checkpoint_from_json(json); });
  }
  return std::nullopt;
}

std::vector<std::string> newest_checkpoints(const std::vector<std::string>& folders,
                                            std::vector<std::string>* torn, int64_t last_step) {
  for (const auto& [step, first] : list_checkpoints(folders.at(0))) {
    if (step > last_step) continue;
    std::vector<std::string> paths;
    for (const std::string& folder : folders) {
      const fs::path path = fs::path(folder) / first.filename();
      try {
        checked_info(path);
        paths.push_back(path.string());
      } catch (const std::exception& error) {
        if (torn) torn->push_back(error_text(error));
        break;
      }
    }
    if (paths.size() == folders.size()) return paths;
  }
  return {};
}

void load_checkpoint(const std::string& path, CheckpointInfo& info, TrainState& state) {
  try {
    info = checked_info(path);
    const NetSpec net = info.model.net();
    const SafetensorsFile file((fs::path(path) / kFiles[1]).string());
    state = {};
    for (const StatePart& part : kStateParts) {
      if (!has_part(part, info.model.recipe)) continue;
      state.*part.values = read_table(file, part.prefix, table_of(part, net));
    }
    read_residuals(file, state);
  } catch (const std::exception& error) {
    throw std::runtime_error("cannot use the checkpoint " + path + ": " + error_text(error));
  }
}

LoadedModel load_model(const std::string& path) {
  LoadedModel model;
  model.file = path;
  if (fs::is_directory(path)) {
    const fs::path folder(path);
    if (fs::exists(folder / kFiles[0])) {
      model.file = (folder / kFiles[0]).string();
    } else {
      const fs::path inner = folder / "checkpoints";
      const std::string runs = fs::is_directory(inner) ? inner.string() : path;
      std::vector<std::string> torn;
      const std::string newest = newest_checkpoint(runs, &torn);
      if (const int replicas = newest.empty() ? kept_replicas(path) : 0; replicas > 0) {
        throw std::runtime_error(fmt::format(
            "{} is a run of {} independent replicas, each a model of its own: take one of them, "
            "as {}/{}0",
            path, replicas, path, kReplica));
      }
      if (newest.empty() && !has_checkpoints(runs)) {
        throw std::invalid_argument("checkpoint: there is none in " + path);
      }
      if (newest.empty()) {
        throw std::runtime_error(
            fmt::format("no checkpoint in {} is whole: {}", runs, fmt::join(torn, "; ")));
      }
      model.file = (fs::path(newest) / kFiles[0]).string();
    }
  }
  const SafetensorsFile file(model.file);
  try {
    const TensorMetadata& metadata = file.metadata();
    model.info.recipe = recipe_from_json(parse_json<Json>(metadata.at("recipe")));
    model.info.classes = std::stoi(metadata.at("classes"));
    model.info.class_names = parse_json<Json>(metadata.at("class_names"));
    if (const auto target = metadata.find("target"); target != metadata.end()) {
      model.info.target = parse_json<Json>(target->second);
    }
    const NetSpec net = model.info.net();
    model.parameters = read_table(file, "", parameter_table(net));
    model.statistics = read_table(file, "", statistics_table(net));
  } catch (const std::exception& error) {
    throw std::runtime_error(model.file + " is not a model of stoker: " + error_text(error));
  }
  return model;
}

TrainState read_state(const Engine& engine, const Recipe& recipe) {
  TrainState state;
  for (const StatePart& part : kStateParts) {
    if (!has_part(part, recipe)) continue;
    std::vector<float>& values = state.*part.values;
    values.resize(static_cast<size_t>(total_count(table_of(part, engine.net()))));
    engine.read(part.kind, values);
  }
  return state;
}

void write_state(const TrainState& state, Engine& engine) {
  for (const StatePart& part : kStateParts) {
    const std::vector<float>& values = state.*part.values;
    if (!values.empty()) engine.write(part.kind, values);
  }
}

int64_t state_bytes(const TrainState& state) {
  size_t count = 0;
  for (const auto buffer : kStateBuffers) count += (state.*buffer).size();
  return static_cast<int64_t>(count * sizeof(float));
}

uint64_t state_hash(const TrainState& state) {
  return fnv1a(float_bytes(state.statistics), fnv1a(float_bytes(state.parameters)));
}

}  // namespace stoker
