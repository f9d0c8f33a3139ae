#include "train/checkpoint/checksum.h"

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace stoker {

uint64_t fnv1a(std::string_view bytes, uint64_t hash) {
  constexpr uint64_t kPrime = 0x100000001b3;
  // Eight bytes are read at a time: ThreadSanitizer checks each read, and tests hash much.
  static_assert(std::endian::native == std::endian::little);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    for (int i = 0; i < 8; ++i, word >>= 8) hash = (hash ^ (word & 0xff)) * kPrime;
  }
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * kPrime;
  return hash;
}

std::string to_hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

uint64_t from_hex(const std::string& text) { return std::stoull(text, nullptr, 16); }

}  // namespace stoker
