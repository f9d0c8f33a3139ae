#include <algorithm>

#include "decode/codec/tiff_lines.h"

namespace stoker {

uint8_t reversed_bits(uint8_t bits) {
  uint8_t result = 0;
  for (int i = 0; i < 8; ++i) result = static_cast<uint8_t>(result << 1 | (bits >> i & 1));
  return result;
}

void PackBits::begin(std::span<const uint8_t> bytes, bool is_bit_reversed) {
  *this = {};
  bytes_ = bytes;
  is_bit_reversed_ = is_bit_reversed;
}

bool PackBits::next(uint8_t& byte) {
  if (bytes_.empty()) return false;
  byte = is_bit_reversed_ ? reversed_bits(bytes_[0]) : bytes_[0];
  bytes_ = bytes_.subspan(1);
  return true;
}

bool PackBits::read(uint8_t* to, int64_t count) {
  constexpr uint8_t kNothing = 128;
  while (count > 0) {
    if (run_ == 0) {
      uint8_t code;
      if (!next(code)) return false;
      if (code == kNothing) continue;
      is_repeated_ = code > kNothing;
      run_ = is_repeated_ ? 257 - code : code + 1;
      if (is_repeated_ && !next(value_)) return false;
    }
    const auto part = static_cast<int>(std::min<int64_t>(run_, count));
    if (is_repeated_) {
      std::fill_n(to, part, value_);
    } else {
      for (int i = 0; i < part; ++i) {
        if (!next(to[i])) return false;
      }
    }
    to += part;
    run_ -= part;
    count -= part;
  }
  return true;
}

}  // namespace stoker
