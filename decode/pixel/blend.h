// The blend of Pillow's ImageEnhance, for one byte. Internal to decode/pixel; blend_inl.h is the
// same for vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace stoker {

// Returns the factor as Pillow's float. Numbers that no float holds become the largest one, so that
// a product with 0 is 0.
inline float blend_factor(double factor) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(factor, -kMax, kMax));
}

// Pillow's Blend.c: a sum of floats, truncated, and clipped where it leaves 0..255. (Pillow clips
// only outside factors of 0 to 1, where nothing can leave that range.)
inline uint8_t blended(int degenerate, int value, float factor) {
  const float mixed =
      static_cast<float>(degenerate) + factor * static_cast<float>(value - degenerate);
  return static_cast<uint8_t>(std::clamp(mixed, 0.0f, 255.0f));
}

}  // namespace stoker
