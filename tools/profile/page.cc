#include "tools/profile/page.h"

#include <nlohmann/json.hpp>

#include "tools/profile/template.h"

namespace stoker {

std::string profile_page(const nlohmann::ordered_json& profile) {
  const std::string json =
      profile.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  std::string data;
  data.reserve(json.size());
  // '<' occurs only in strings, where \u003c means the same.
  for (const char c : json) {
    if (c == '<') {
      data += "\\u003c";
    } else {
      data += c;
    }
  }
  std::string page = kProfileTemplate;
  return page.replace(page.find(kProfilePlace), std::string_view(kProfilePlace).size(), data);
}

}  // namespace stoker
