// Python's arithmetic of sizes, which torchvision's boxes are computed with.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "decode/image.h"

namespace stoker {

inline constexpr int kMaxSide = 1 << 15;  // pixels of a finished row

// round(): halves go to the even neighbour, as in the default rounding mode.
inline int round_half_even(double value) { return static_cast<int>(std::lrint(value)); }

// CenterCrop's place: int(round((outer - inner) / 2.0)).
inline Box center_box(Size outer, Size inner) {
  return {round_half_even((outer.width - inner.width) / 2.0),
          round_half_even((outer.height - inner.height) / 2.0), inner.width, inner.height};
}

// Resize(short side): the long side is truncated to whole pixels, not rounded. (An image one pixel
// wide and millions of pixels long is shortened; torchvision would run out of memory.)
inline Size by_short_side(Size source, int target) {
  constexpr int64_t kMaxResizedSide = 1 << 30;
  const auto [shorter, longer] = std::minmax(source.width, source.height);
  const int other = static_cast<int>(std::min(int64_t{target} * longer / shorter, kMaxResizedSide));
  return source.width <= source.height ? Size{target, other} : Size{other, target};
}

// The largest size of the image's shape that fits into another, in whole pixels.
inline Size fitted_size(Size image, Size into) {
  const double ratio = std::min(static_cast<double>(into.width) / image.width,
                                static_cast<double>(into.height) / image.height);
  const auto side = [&](int pixels) { return std::max(round_half_even(pixels * ratio), 1); };
  return {side(image.width), side(image.height)};
}

// Half of the missing pixels on each side; of an odd number, the second side has one more. As the
// YOLO family: round(half - 0.1) and round(half + 0.1).
inline std::array<int, 2> halves(int missing) {
  return {round_half_even(missing / 2.0 - 0.1), round_half_even(missing / 2.0 + 0.1)};
}

// int(): the side of a resized image that is computed as a number. It has at least one pixel
// (there, an empty image would be an error), and no more than can be made.
inline int truncated_side(double pixels) {
  constexpr double kMax = 1 << 30;
  return static_cast<int>(std::clamp(pixels, 1.0, kMax));
}

}  // namespace stoker
