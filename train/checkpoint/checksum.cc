#include "train/checkpoint/checksum.h"

#include <cinttypes>
#include <cstdio>

namespace stoker {

uint64_t fnv1a(std::string_view bytes, uint64_t hash) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return hash;
}

std::string to_hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

uint64_t from_hex(const std::string& text) { return std::stoull(text, nullptr, 16); }

}  // namespace stoker
