// Random parts of an image, for tests.
#pragma once

#include <random>

#include "decode/crop_spec.h"

namespace stoker {

inline Box random_box(Size size, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Box box{0, 0, 1 + below(size.width), 1 + below(size.height)};
  box.x = below(size.width - box.width + 1);
  box.y = below(size.height - box.height + 1);
  return box;
}

// Returns any crop of an image, resized and cut to any window; sometimes without a resize.
inline CropSpec random_spec(Size image, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  CropSpec spec;
  spec.crop = random_box(image, random);
  spec.resized = {8 + below(160), 8 + below(160)};
  if (below(4) == 0) spec.resized = {spec.crop.width, spec.crop.height};
  spec.window = random_box(spec.resized, random);
  spec.flip = below(2) != 0;
  return spec;
}

}  // namespace stoker
