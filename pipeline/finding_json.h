// Bad samples as JSON, in lists that a check makes and in a run's quarantine file: the fields that
// users see.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "pipeline/sample_checker.h"

namespace stoker {

// sample_id, name, path, label, reason, byte_offset, message.
nlohmann::ordered_json to_json(const Source& source, const Finding& finding);
// reason, files, name, path, message.
nlohmann::ordered_json to_json(const Source& source, const SourceNote& note);
// A line, ended.
std::string to_jsonl(const nlohmann::ordered_json& row);
std::string to_jsonl(const Source& source, const std::vector<Finding>& findings);

}  // namespace stoker
