#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/parquet_columns.h"

namespace stoker {
namespace {

constexpr size_t kMaxListedFields = 40;

// Names of the groups and fields between a list's name and its elements.
constexpr std::array kListNames = {"list", "element", "item", "array", "bag"};

// Returns the type of a list's elements, which `datasets` wraps; other types as they are.
const nlohmann::json& unwrapped(const nlohmann::json& type, const std::string& wanted) {
  const nlohmann::json* at = &type;
  while (at->is_object() && !at->contains(wanted) && at->contains("feature")) {
    at = &(*at)["feature"];
  }
  return at->is_array() && at->size() == 1 ? unwrapped((*at)[0], wanted) : *at;
}

}  // namespace

bool is_list_name(const std::string& name) {
  return std::ranges::find(kListNames, name) != kListNames.end();
}

const ParquetField* find_field(const ParquetFooter& footer, const std::string& path) {
  for (const ParquetField& field : footer.fields) {
    if (field.path() == path) return &field;
  }
  return nullptr;
}

std::string list_fields(const ParquetFooter& footer) {
  std::string text;
  size_t listed = 0, others = 0;
  for (const ParquetField& field : footer.fields) {
    if (field.names.size() != 1) continue;
    if (listed == kMaxListedFields) {
      ++others;
      continue;
    }
    text +=
        (listed++ == 0 ? "" : ", ") + printable_name(field.path()) + " (" + field.describe() + ")";
  }
  if (others > 0) text += " and " + std::to_string(others) + " more";
  return listed == 0 ? "there are no columns" : "the columns are " + text;
}

std::vector<std::string> class_names_of(const ParquetFooter& footer, const ParquetField& field) {
  const nlohmann::json noted = nlohmann::json::parse(footer.huggingface, nullptr, false);
  std::vector<std::string> path = {"info", "features"};
  path.insert(path.end(), field.names.begin(), field.names.end());
  path.emplace_back("names");
  const nlohmann::json* at = &noted;
  for (const std::string& key : path) {
    at = &unwrapped(*at, key);
    const bool is_there = at->is_object() && at->contains(key);
    if (!is_there && is_list_name(key)) continue;
    if (!is_there) return {};
    at = &(*at)[key];
  }
  if (!at->is_array()) return {};
  std::vector<std::string> names;
  for (const nlohmann::json& name : *at) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
    if (names.back().find('\0') != std::string::npos) return {};
  }
  return names;
}

}  // namespace stoker
