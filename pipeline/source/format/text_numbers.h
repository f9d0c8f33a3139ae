// The numbers of targets that are written as text or as JSON. Functions of their arguments alone.
// Threads: any. Errors: they return "" or what is wrong ("is empty"), and `out` may then have a
// part of the numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "pipeline/source/format/found_target.h"

namespace stoker {

// A decimal number, or several with spaces or semicolons between them: a single number, or a vector
// of that many. "nan", "inf" and "-inf" are numbers with a fraction.
std::string read_text_numbers(std::string_view text, FoundTarget& out);

// A number, or an array of numbers or of arrays that have one shape. true is 1, false is 0.
std::string read_json_numbers(const nlohmann::json& value, FoundTarget& out);

}  // namespace stoker
