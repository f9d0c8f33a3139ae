#include "pipeline/source/finding_json.h"

#include <nlohmann/json.hpp>

#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

std::string finding_path(const Source& source, const std::string& name) {
  // A list may name its files by absolute paths.
  if (source.root().empty() || name.starts_with('/')) return name;
  return valid_text(source.root()) + "/" + name;
}

}  // namespace

nlohmann::ordered_json to_json(const Source& source, const Finding& finding) {
  const std::string name = source.name(finding.id);
  return {{"sample_id", finding.id},
          {"name", name},
          {"path", finding_path(source, name)},
          {"label", source.label(finding.id)},
          {"reason", finding.reason},
          {"byte_offset", finding.byte_offset},
          {"message", finding.message}};
}

nlohmann::ordered_json to_json(const Source& source, const SourceNote& note) {
  return {{"reason", note.reason},
          {"files", note.files},
          {"name", note.name},
          {"path", finding_path(source, note.name)},
          {"message", note.message}};
}

std::string to_jsonl(const nlohmann::ordered_json& row) {
  // Names and messages may have bytes that are not UTF-8, which JSON cannot represent.
  return row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_jsonl(const Source& source, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += to_jsonl(to_json(source, finding));
  return text;
}

}  // namespace stoker
