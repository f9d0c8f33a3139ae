// Bad samples as JSON: the fields that users see.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "pipeline/sample_checker.h"

namespace stoker {

nlohmann::ordered_json to_json(const Source& source, const Finding& finding);
std::string to_jsonl(const Source& source, const std::vector<Finding>& findings);

}  // namespace stoker
