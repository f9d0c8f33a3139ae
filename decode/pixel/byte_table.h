// Operations that map each byte by itself, as tables of 256 bytes. Composing tables is exact, so
// several operations in a row cost one pass over the pixels. The bytes are those of
// torchvision.transforms.v2.functional on PIL images: PIL.ImageEnhance, PIL.ImageOps and
// Image.point.
//
// Pure functions. Every finite number gives a table; a caller checks the ranges that make sense.
#pragma once

#include <array>
#include <cstdint>

#include "decode/image.h"

namespace stoker {

using ByteTable = std::array<uint8_t, 256>;  // the new byte of each old one

// Blends every byte with `degenerate` (0..255): Image.blend() with an image of one grey. Factor 0
// gives the degenerate, 1 changes nothing, more than 1 moves away from it. The sum is one of floats
// and is truncated; above 1 and below 0 it is clipped (Pillow's Blend.c).
ByteTable blend_table(int degenerate, double factor);
// ImageEnhance.Brightness: a blend with black.
ByteTable brightness_table(double factor);
// ImageOps.invert: 255 - v.
ByteTable invert_table();
// ImageOps.posterize: keeps the upper `bits` bits, 0..8 (more is 8, less is 0).
ByteTable posterize_table(int bits);
// ImageOps.solarize: inverts the bytes that are not less than `threshold`.
ByteTable solarize_table(double threshold);
// functional.adjust_gamma: 255.999 * (v / 255) ** gamma, truncated; `gamma` >= 0.
ByteTable gamma_table(double gamma);

// Returns the table that does `first` and then `second`.
ByteTable composed(const ByteTable& first, const ByteTable& second);

// Maps every byte of the image, in place.
void apply_table(MutableImageView image, const ByteTable& table);
// Maps red, green and blue by a table each, in place.
void apply_tables(MutableImageView image, const std::array<ByteTable, 3>& tables);

}  // namespace stoker
