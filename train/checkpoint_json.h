// trainer.json of a checkpoint: its facts as JSON, and the checksum that guards its files.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "train/checkpoint.h"

namespace stoker {

nlohmann::json checkpoint_to_json(const CheckpointInfo& info);
// Throws std::exception saying which field is missing, of another type or of another format.
CheckpointInfo checkpoint_from_json(const nlohmann::json& json);

// FNV-1a, 64 bit; `hash` continues one.
uint64_t fnv1a(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325);
std::string to_hex(uint64_t value);  // 16 digits
uint64_t from_hex(const std::string& text);

}  // namespace stoker
