#include "pipeline/files/utf8.h"

#include <cstdint>
#include <cstring>

namespace stoker {

size_t utf8_length(std::string_view text, size_t at) {
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

size_t find_invalid_utf8(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word;
    if (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & kHighBits) == 0) {
        at += sizeof word;
        continue;
      }
    }
    const size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return at;
}

std::string_view utf8_prefix(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  const auto is_tail = [](char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; };
  while (bytes > 0 && is_tail(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

}  // namespace stoker
