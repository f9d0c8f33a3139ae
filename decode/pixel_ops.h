// Where finished RGB pixels go: shifts, flips, boxes and mixtures, in place or from view to view.
// Each is a stateless function. decode/pixel has the operations that change colours.
#pragma once

#include <cstddef>
#include <cstdint>

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

// CMYK to RGB with Pillow's rounding: returns the part of `light` that this much ink leaves.
// `light` is 255 without black ink.
inline uint8_t ink_on_light(int ink, int light) {
  const int product = ink * light + 128;
  return static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
}

// Weights of mix_values() are whole numbers of this many parts, so that the bytes are exact.
inline constexpr int kMixParts = 1 << 15;

// Sets each of `count` values to (share * own + (kMixParts - share) * other + kMixParts / 2) /
// kMixParts, where `share` is 0 to kMixParts and the division drops the remainder. REQUIRES: no
// overlap.
void mix_values(int share, const uint8_t* other, size_t count, uint8_t* own);

// The same for two rows that are mixed into each other, each from the other's values as they were.
// It reads and writes them once. Each has the share of its own values. REQUIRES: no overlap.
void mix_each_other(int first_share, uint8_t* first, int second_share, uint8_t* second,
                    size_t count);

// PadMode::reflect for one index: mirrors an index that is less than `size` outside; the edge is
// not repeated.
inline int reflect(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

}  // namespace stoker
