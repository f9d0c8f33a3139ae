// The plain twin of mix_rows(): value by value, from copies of both rows.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/augment/mix.h"

namespace stoker {

inline std::vector<uint8_t> mixed_pixels(const MixDraw& draw, Size size,
                                         const std::vector<uint8_t>& own,
                                         const std::vector<uint8_t>& partner) {
  std::vector<uint8_t> out = own;
  for (size_t i = 0; i < own.size(); ++i) {
    const int x = static_cast<int>(i / 3) % size.width, y = static_cast<int>(i / 3) / size.width;
    const Box& box = draw.box;
    if (draw.kind == MixKind::mixup) {
      const auto share = static_cast<int64_t>(draw.own_share * kMixParts);
      out[i] = static_cast<uint8_t>(
          (share * own[i] + (kMixParts - share) * partner[i] + kMixParts / 2) / kMixParts);
    } else if (draw.kind == MixKind::cutmix && x >= box.x && x < box.x + box.width && y >= box.y &&
               y < box.y + box.height) {
      out[i] = partner[i];
    }
  }
  return out;
}

}  // namespace stoker
