// Page-aligned memory of the CPU engine, on huge pages if possible, because every step walks arenas
// and flat buffers from end to end. Zeroed. Not copyable; movable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace stoker {

class CpuMemory {
 public:
  CpuMemory() = default;
  explicit CpuMemory(int64_t bytes);  // throws std::runtime_error with the number
  ~CpuMemory();
  CpuMemory(CpuMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  CpuMemory& operator=(CpuMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  std::span<float> floats() const {
    return {reinterpret_cast<float*>(data_), static_cast<size_t>(bytes_) / sizeof(float)};
  }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

inline CpuMemory float_memory(int64_t count) {
  return CpuMemory(count * static_cast<int64_t>(sizeof(float)));
}

}  // namespace stoker
