#include "tools/data/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker {

std::string table_text(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      row += i + 1 == line.size() ? line[i] : fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    text += row + "\n";
  }
  return text;
}

}  // namespace stoker
