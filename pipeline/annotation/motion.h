// Where the pixels of a picture go in a step of an augmentation, for what lies on them. Values.
#pragma once

#include <array>
#include <cstdint>

#include "decode/image.h"

namespace stoker {

// In brackets: the numbers in Movement::values.
enum class Motion : uint8_t {
  none,           // every pixel stays where it is
  unknown,        // what lies on the picture cannot follow
  crop,           // [x, y, width, height]: lies inside the picture
  resize,         // of the whole picture
  flip,           // left to right
  vertical_flip,  // upside down
  turn,           // [quarters of a circle, counterclockwise, 1 to 3]
  pad,            // [left, top, right, bottom], >= 0
  // Pixel (x, y) shows what was at the matrix times (x + 1/2, y + 1/2, 1).
  affine,       // [a, b, c, d, e, f]: (a x + b y + c, d x + e y + f)
  perspective,  // [a, ..., h]: (a x + b y + c, d x + e y + f) / (g x + h y + 1)
  // The pixels stay. These are of objects alone.
  keep_centers,  // [x, y, width, height]: boxes whose centre is not inside become empty
  clamp,         // boxes are cut off at the picture's sides
  // [min_size, min_area, min_visibility]: objects with a smaller box are dropped, and those of
  // whose box steps have cut off too much.
  sanitize,
  drop_empty,  // so are objects whose box has no width or no height
};

constexpr bool is_of_objects(Motion motion) { return motion >= Motion::keep_centers; }

struct Movement {
  Motion motion = Motion::none;
  Size before, after;  // of the picture
  std::array<double, 8> values{};
};

}  // namespace stoker
