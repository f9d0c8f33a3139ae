#include "tools/finding_json.h"

#include <nlohmann/json.hpp>

namespace stoker {

nlohmann::ordered_json to_json(const Source& source, const Finding& finding) {
  return {{"sample_id", finding.id},
          {"name", source.name(finding.id)},
          {"label", source.label(finding.id)},
          {"reason", finding.reason},
          {"byte_offset", finding.byte_offset},
          {"message", finding.message}};
}

std::string to_jsonl(const Source& source, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    // Messages may quote a file's bytes: what is not UTF-8 must not end the listing.
    text +=
        to_json(source, finding).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n";
  }
  return text;
}

}  // namespace stoker
