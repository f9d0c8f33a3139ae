// Where finished RGB pixels go: shifts, flips and boxes, in place or from view to view. Each is a
// stateless function. decode/pixel has the operations that change colours.
#pragma once

#include "decode/image.h"

namespace stoker {

enum class PadMode : uint8_t {
  zero,
  reflect
};  // reflect: without repeating the edge, as numpy's "reflect"

// Sets out(y, x) = source(y + offset_y, x + offset_x) with padding outside, then mirrors if `flip`.
// Offsets are in [-pad, pad]; for `reflect` pad < min(width, height). REQUIRES: same sizes, no
// overlap.
void shift_flip(ImageView source, int offset_x, int offset_y, bool flip, PadMode mode,
                MutableImageView out);

// Does the same from the planar (3, height, width) u8 layout of CIFAR's binary files. `next` points
// to the planes of the next call, which are prefetched into the cache if they are small; null:
// none.
void shift_flip_planar(const uint8_t* planes, Size size, int offset_x, int offset_y, bool flip,
                       PadMode mode, MutableImageView out, const uint8_t* next = nullptr);

void flip_horizontal(MutableImageView image);
void flip_vertical(MutableImageView image);  // upside down
// Turns by `quarters` of a circle (0 to 3), counter-clockwise, as PIL's Image.transpose. REQUIRES:
// out's size is in's, with its sides exchanged for 1 and 3; no overlap.
void turn(ImageView in, int quarters, MutableImageView out);
// Mirrors one row: out's pixel x = source's pixel width - 1 - x. REQUIRES: no overlap.
void copy_mirrored(const uint8_t* source, int width, uint8_t* out);
void fill_box(MutableImageView image, Box box, uint8_t value);  // clipped to the image

}  // namespace stoker
