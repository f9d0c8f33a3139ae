// The blurs of decode/pixel/blur.h, as obvious loops.
#pragma once

#include "decode/image.h"

namespace stoker {

// torch's convolution in two dimensions: fused products added to a float, row by row. The weights
// are those of make_gaussian_kernel(), which tests/golden/pixel compares with torch's.
void gaussian_blur_reference(ImageView in, int kernel_x, int kernel_y, double sigma_x,
                             double sigma_y, MutableImageView out);

// Pillow's BoxBlur.c, value by value: the same bytes as pillow_gaussian_blur().
void pillow_gaussian_blur_reference(ImageView in, double radius, MutableImageView out);

}  // namespace stoker
