// Converts a CheckpointInfo to and from the JSON of a checkpoint's trainer.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "train/checkpoint/checkpoint.h"

namespace stoker {

nlohmann::json checkpoint_to_json(const CheckpointInfo& info);
// Throws std::exception naming the field that is missing or has another type or format.
CheckpointInfo checkpoint_from_json(const nlohmann::json& json);

}  // namespace stoker
