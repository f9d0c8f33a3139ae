// CMYK to RGB with Pillow's rounding.
#pragma once

#include <cstdint>

namespace stoker {

// What is left of `light` (255: none of it is taken by black) under this much ink.
inline uint8_t ink_on_light(int ink, int light) {
  const int product = ink * light + 128;
  return static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
}

}  // namespace stoker
