// Reads the .npy files that the program writes, for tests; strict about the format.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace stoker {

struct NpyFile {
  std::string descr;
  std::vector<int64_t> shape;
  std::string data;  // raw bytes

  template <typename Value>
  std::vector<Value> values() const {
    std::vector<Value> result(data.size() / sizeof(Value));
    std::memcpy(result.data(), data.data(), result.size() * sizeof(Value));
    return result;
  }
};

NpyFile read_npy(const std::string& path);  // throws std::runtime_error

}  // namespace stoker
