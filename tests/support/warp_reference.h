// The plain twins of decode/pixel/warp.h: the same bytes, one pixel after another, each as Pillow's
// Geometry.c has it. Sizes and parameters as there. Threads: any.
#pragma once

#include "decode/pixel/warp.h"

namespace stoker {

void warp_affine_reference(ImageView in, const std::array<double, 6>& matrix,
                           Interpolation interpolation, Rgb fill, MutableImageView out);
void warp_perspective_reference(ImageView in, const std::array<double, 8>& coefficients,
                                Interpolation interpolation, Rgb fill, MutableImageView out);

}  // namespace stoker
