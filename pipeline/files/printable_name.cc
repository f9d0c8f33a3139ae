#include "pipeline/files/printable_name.h"

#include <cstddef>
#include <cstdint>

namespace stoker {
namespace {

// Returns the length of the valid UTF-8 sequence at `text`, or 0. Overlong forms, surrogates and
// values above U+10FFFF are not valid (Unicode, table 3-7).
size_t utf8_length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : uint8_t{0};
  };
  const auto in = [&](size_t i, int low, int high) { return byte(i) >= low && byte(i) <= high; };
  const auto tail = [&](size_t i) { return in(i, 0x80, 0xBF); };
  if (in(0, 0x00, 0x7F)) return 1;
  if (in(0, 0xC2, 0xDF)) return tail(1) ? 2 : 0;
  if (in(0, 0xE0, 0xEF)) {
    const bool second = byte(0) == 0xE0   ? in(1, 0xA0, 0xBF)
                        : byte(0) == 0xED ? in(1, 0x80, 0x9F)
                                          : tail(1);
    return second && tail(2) ? 3 : 0;
  }
  if (in(0, 0xF0, 0xF4)) {
    const bool second = byte(0) == 0xF0   ? in(1, 0x90, 0xBF)
                        : byte(0) == 0xF4 ? in(1, 0x80, 0x8F)
                                          : tail(1);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

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
