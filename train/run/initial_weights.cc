#include "train/run/initial_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

namespace stoker {
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
