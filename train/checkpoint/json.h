// trainer.json of a checkpoint: its facts as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "train/checkpoint/checkpoint.h"

namespace stoker {

nlohmann::json checkpoint_to_json(const CheckpointInfo& info);
// Throws std::exception saying which field is missing, of another type or of another format.
CheckpointInfo checkpoint_from_json(const nlohmann::json& json);

}  // namespace stoker
