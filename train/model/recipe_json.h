// Converts a recipe to JSON and back, all fields by name: checkpoints and config.json hold it. An
// augmentation is the text of its stages, which make images of `input`; operations of the user's
// own are left out. Checkpoints from before there were lists of stages are read too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/model/recipe.h"

namespace stoker {

nlohmann::json recipe_to_json(const Recipe& recipe);
// Throws std::runtime_error naming the field that is missing, unknown or of another type.
Recipe recipe_from_json(const nlohmann::json& json);
// Returns the fields whose values differ, as "optimizer.momentum: 0.9 -> 0.85".
std::vector<std::string> recipe_differences(const Recipe& before, const Recipe& after);
// Returns the first of them, or "". Ignores fields whose full names are in `except`.
std::string recipe_difference(const Recipe& before, const Recipe& after,
                              const std::vector<std::string>& except = {});

}  // namespace stoker
