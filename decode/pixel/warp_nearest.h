// warp_affine() without interpolation: Pillow has three ways to count the coordinates, and takes
// the first that fits the matrix.
#pragma once

#include <array>

#include "decode/image.h"
#include "decode/pixel/warp.h"

namespace stoker {

void warp_affine_nearest(ImageView in, const std::array<double, 6>& matrix, Rgb fill,
                         MutableImageView out);

}  // namespace stoker
