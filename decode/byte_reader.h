// Reads bounds-checked integers from untrusted bytes. A read outside returns 0 and sets
// went_outside().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace stoker {

// Returns true if the bytes from `at` on are these.
inline bool begins_with(std::span<const uint8_t> bytes, const void* these, size_t size,
                        size_t at = 0) {
  return bytes.size() >= at + size && std::memcmp(bytes.data() + at, these, size) == 0;
}

class ByteReader {
 public:
  ByteReader(std::span<const uint8_t> bytes, bool big_endian)
      : bytes_(bytes), big_endian_(big_endian) {}

  uint8_t u8(size_t at) { return has(at, 1) ? bytes_[at] : 0; }
  uint16_t u16(size_t at) { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(size_t at) { return static_cast<uint32_t>(number(at, 4)); }
  uint32_t u24(size_t at) { return static_cast<uint32_t>(number(at, 3)); }
  uint64_t u64(size_t at) { return number(at, 8); }
  size_t size() const { return bytes_.size(); }
  bool is_big_endian() const { return big_endian_; }
  bool went_outside() const { return went_outside_; }

  // Returns the bytes [at, at + count), cut at the end of the data.
  std::span<const uint8_t> part(size_t at, size_t count) const {
    if (at >= bytes_.size()) return {};
    return bytes_.subspan(at, count < bytes_.size() - at ? count : bytes_.size() - at);
  }

 private:
  bool has(size_t at, size_t count) {
    const bool inside = at <= bytes_.size() && count <= bytes_.size() - at;
    went_outside_ |= !inside;
    return inside;
  }
  uint64_t number(size_t at, size_t count) {
    if (!has(at, count)) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8 | bytes_[at + (big_endian_ ? i : count - 1 - i)];
    }
    return value;
  }

  std::span<const uint8_t> bytes_;
  bool big_endian_;
  bool went_outside_ = false;
};

}  // namespace stoker
