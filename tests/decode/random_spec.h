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
  spec.crop.width = 1 + below(image.width);
  spec.crop.height = 1 + below(image.height);
  spec.crop.x = below(image.width - spec.crop.width + 1);
  spec.crop.y = below(image.height - spec.crop.height + 1);
  spec.resized = {8 + below(160), 8 + below(160)};
  if (below(4) == 0) spec.resized = {spec.crop.width, spec.crop.height};
  spec.window.width = 1 + below(spec.resized.width);
  spec.window.height = 1 + below(spec.resized.height);
  spec.window.x = below(spec.resized.width - spec.window.width + 1);
  spec.window.y = below(spec.resized.height - spec.window.height + 1);
  spec.flip = below(2) != 0;
  return spec;
}

}  // namespace stoker
