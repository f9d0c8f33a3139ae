// CMYK to RGB with Pillow's rounding.
#pragma once

#include <cstdint>

namespace stoker {

// Returns the part of `light` that this much ink leaves. `light` is 255 without black ink.
inline uint8_t ink_on_light(int ink, int light) {
  const int product = ink * light + 128;
  return static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
}

}  // namespace stoker
