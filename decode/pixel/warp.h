// Geometric transforms of RGB images: the bytes of PIL's Image.transform with AFFINE or
// PERSPECTIVE, as torchvision's rotate, affine and perspective call it for PIL images. Source of
// the formulas: Pillow, src/libImaging/Geometry.c, as compiled for x86-64 (without fused
// operations); Pillow 9 to 13 give the same bytes.
//
// Output pixel (x, y) shows the source at the coordinates that the matrix gives for its centre,
// (x + 1/2, y + 1/2); integers are the edges of pixels there. `fill` goes where the coordinates are
// outside the source. Interpolation repeats the pixels of the edge.
//
// `in` and `out` have any sizes and do not overlap. There are no errors: any number may be in a
// matrix. Where a coordinate is not a number, an interpolated pixel is black, as Pillow's is.
// Threads: any; the functions keep nothing and allocate nothing.
#pragma once

#include <array>
#include <cstdint>

#include "decode/image.h"

namespace stoker {

// How a pixel is made of those around its coordinates: one of them, 2 x 2, or 4 x 4 (cubic with
// a = -1). None of them is antialiased.
enum class Interpolation : uint8_t { nearest, bilinear, bicubic };

using Rgb = std::array<uint8_t, 3>;

// `first_x`, `first_y`: the output's first pixel is that of the whole; the others are not made.
// Affine maps by `nearest` have no such part.

// Source x = (m0 x + m1 y) + m2, source y = (m3 x + m4 y) + m5. `nearest` counts in steps of 2^-16
// of a source pixel, or adds up the steps if m1 = m3 = 0, as Pillow does.
void warp_affine(ImageView in, const std::array<double, 6>& matrix, Interpolation interpolation,
                 Rgb fill, MutableImageView out, int first_x = 0, int first_y = 0);

// Source x = ((c0 x + c1 y) + c2) / d, source y = ((c3 x + c4 y) + c5) / d, d = (c6 x + c7 y) + 1.
void warp_perspective(ImageView in, const std::array<double, 8>& coefficients,
                      Interpolation interpolation, Rgb fill, MutableImageView out, int first_x = 0,
                      int first_y = 0);

}  // namespace stoker
