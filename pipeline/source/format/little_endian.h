// Reads an unsigned integer that has its low byte first, as most formats store it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker {

// `bytes` are all bytes of the integer: 8 at most.
inline uint64_t read_little_endian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | bytes[i - 1];
  return value;
}

}  // namespace stoker
