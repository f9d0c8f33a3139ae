// The data set that stoker draws itself: ten classes of shapes, each turned, stretched, textured
// and set among clutter, so that colour and position do not reveal the class: a linear model stays
// near guessing, a small CNN does well. Stateless; every pixel is a pure function of (seed, split,
// index).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/image.h"

namespace stoker {

const std::vector<std::string>& shape_names();  // ten, sorted

// Draws the shape of class index % 10. REQUIRES: out is at least 8 x 8 pixels.
void paint_shape(uint64_t seed, int64_t split, int64_t index, MutableImageView out);

}  // namespace stoker
