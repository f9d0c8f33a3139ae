// A table for a terminal: each column is as wide as its widest cell, the last as wide as it is.
#pragma once

#include <string>
#include <vector>

namespace stoker {

std::string table_text(const std::vector<std::vector<std::string>>& lines);

}  // namespace stoker
