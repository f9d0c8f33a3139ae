// JPEG's byte stuffing: in entropy-coded data, a zero byte follows every byte FF, so that FF and
// another byte is a marker.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

// The bytes that copy_unstuffed may write after those of its result.
inline constexpr size_t kUnstuffedPadding = 64;

// Copies [from, end) to `to` without the zero bytes that follow FF, up to the first marker. Returns
// where the marker begins (or `end`) and moves `to` past the last byte. REQUIRES: room for
// end - from + kUnstuffedPadding bytes.
const uint8_t* copy_unstuffed(const uint8_t* from, const uint8_t* end, uint8_t*& to);

// Returns how many of the bytes are FF: how many bytes of stuffing were removed from them.
uint32_t count_ff(const uint8_t* bytes, size_t count);

}  // namespace stoker
