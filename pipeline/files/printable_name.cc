#include "pipeline/files/printable_name.h"

#include <cstddef>
#include <cstdint>

#include "pipeline/files/utf8.h"

namespace stoker {
std::string printable_name(const std::string& name) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(name.size());
  for (size_t at = 0; at < name.size();) {
    const auto byte = static_cast<uint8_t>(name[at]);
    const size_t length = utf8_length(name, at);
    if (length == 0 || byte < 0x20 || byte == 0x7F || byte == '\\') {
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      ++at;
    } else {
      text.append(name, at, length);
      at += length;
    }
  }
  return text;
}

std::string valid_text(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return printable_name(text);
    at += length;
  }
  return text;
}

}  // namespace stoker
