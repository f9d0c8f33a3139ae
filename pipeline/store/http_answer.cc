// Apart from http_client.cc, because the plugin needs it, too.
#include "pipeline/store/http_client.h"

namespace stoker {

const std::string& HttpAnswer::header(const std::string& name) const {
  static const std::string kNone;
  for (const auto& field : headers) {
    if (field.first == name) return field.second;
  }
  return kNone;
}

}  // namespace stoker
