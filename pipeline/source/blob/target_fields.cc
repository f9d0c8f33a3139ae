#include "pipeline/source/blob/target_fields.h"

#include <set>
#include <stdexcept>
#include <string_view>

#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

TargetField read_field(const std::string& text, BlobFormat format) {
  TargetField target;
  target.field = text;
  for (const TargetType type :
       {TargetType::uint8, TargetType::int32, TargetType::int64, TargetType::float32}) {
    const std::string suffix = std::string(":") + name_of(type);
    if (!text.ends_with(suffix)) continue;
    target.type = type;
    target.field.resize(text.size() - suffix.size());
  }
  constexpr std::string_view kJson = "json:";
  const bool is_json = format == BlobFormat::tar && target.field.starts_with(kJson);
  target.name = is_json ? target.field.substr(kJson.size()) : target.field;
  return target;
}

}  // namespace

std::vector<TargetField> target_fields(const std::vector<std::string>& targets_from,
                                       BlobFormat format) {
  std::vector<TargetField> fields;
  std::set<std::string> names;
  for (const std::string& text : targets_from) {
    fields.push_back(read_field(text, format));
    const std::string& name = fields.back().name;
    const auto fail = [&](const char* what) {
      throw std::invalid_argument("targets_from has " + quoted_name(text) + ", " + what);
    };
    if (name.empty()) fail("which names no field");
    if (name.find('\0') != std::string::npos) fail("which has a NUL byte");
    if (!names.insert(name).second) fail("whose name comes twice");
  }
  return fields;
}

}  // namespace stoker
