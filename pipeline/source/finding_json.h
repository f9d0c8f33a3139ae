// Writes bad samples as JSON, for the lists of a check and for a run's quarantine file. Users see
// these fields.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "pipeline/source/sample_checker.h"

namespace stoker {

// The fields: sample_id, name, path, label, reason, byte_offset, message.
nlohmann::ordered_json to_json(const Source& source, const Finding& finding);
// The fields: reason, files, name, path, message.
nlohmann::ordered_json to_json(const Source& source, const SourceNote& note);
// Returns one line, with its newline.
std::string to_jsonl(const nlohmann::ordered_json& row);
std::string to_jsonl(const Source& source, const std::vector<Finding>& findings);

}  // namespace stoker
