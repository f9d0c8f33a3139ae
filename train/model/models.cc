#include "train/model/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <stdexcept>

#include "train/model/nets/model_table.h"

namespace stoker {
namespace {

const std::map<std::string, Model>& models() {
  static const std::map<std::string, Model> all = [] {
    std::map<std::string, Model> result;
    for (ModelFamily* const family : {STOKER_MODEL_FAMILIES}) {
      for (Model& model : family()) result[model.name] = model;
    }
    return result;
  }();
  return all;
}

const Model& known_model(const std::string& name) {
  const auto found = models().find(name);
  if (found != models().end()) return found->second;
  throw std::invalid_argument(
      fmt::format("no model \"{}\"; there are {}", name, fmt::join(list_models(), ", ")));
}

}  // namespace

std::vector<std::string> list_models() {
  std::vector<std::string> names;
  for (const auto& [name, model] : models()) names.push_back(name);
  return names;
}

NetSpec make_net(const std::string& name, Size input, int classes, const ModelOptions& options) {
  const Model& model = known_model(name);
  const std::vector<int>& widths = options.widths.empty() ? model.widths : options.widths;
  if (widths.size() != model.widths.size()) {
    throw std::invalid_argument(fmt::format("model '{}' takes {} widths, not {}", name,
                                            model.widths.size(), widths.size()));
  }
  try {
    return model.make({name, input, classes, widths});
  } catch (const std::invalid_argument& error) {
    if (input.width < 1 || input.height < 1 || classes < 1) throw;
    throw std::invalid_argument(fmt::format("model '{}' does not fit {}x{} pixels: {}", name,
                                            input.width, input.height, error.what()));
  }
}

Recipe default_recipe(const std::string& model) { return known_model(model).recipe(model); }

}  // namespace stoker
