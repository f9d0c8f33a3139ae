// Rotated boxes after a motion, as torchvision.transforms.v2.functional leaves them (0.29). A box
// has the x and y of its corners that are upper left, upper right, lower right and lower left
// before the turn. Pure functions. Threads: any.
#pragma once

#include <array>

#include "decode/image.h"

namespace stoker {

using RotatedBox = std::array<double, 8>;

// Returns the rectangle for what a motion has made of a box: it keeps two corners, those at the
// ends of the longer diagonal (_parallelogram_to_bounding_boxes()).
RotatedBox rectangle_of(const RotatedBox& moved);
// Returns the box cut off at the sides of a picture: the smallest one with the same angle that has
// all of it that is inside (clamp_bounding_boxes(), "soft"). One that lies outside becomes a point.
RotatedBox clamped(const RotatedBox& box, Size picture);
// Returns the smallest upright box: x0, y0, x1, y1.
std::array<double, 4> upright_box(const RotatedBox& box);

}  // namespace stoker
