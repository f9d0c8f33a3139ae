// Inputs that consist of several files: two lengths (16 bits, low byte first), then the files.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

using FuzzParts = std::array<std::string_view, 3>;

inline FuzzParts split_fuzz_parts(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  if (size < 4) return {"", "", rest};
  rest.remove_prefix(4);
  FuzzParts parts;
  for (size_t i = 0; i < 2; ++i) {
    const size_t length = data[2 * i] | static_cast<size_t>(data[2 * i + 1]) << 8;
    parts[i] = rest.substr(0, length);
    rest.remove_prefix(std::min(length, rest.size()));
  }
  parts[2] = rest;
  return parts;
}

inline std::string join_fuzz_parts(const FuzzParts& parts) {
  std::string all;
  for (size_t i = 0; i < 2; ++i) {
    all += static_cast<char>(parts[i].size() & 0xff);
    all += static_cast<char>(parts[i].size() >> 8);
  }
  for (const std::string_view part : parts) all += part;
  return all;
}

}  // namespace stoker
