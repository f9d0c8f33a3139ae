// Writes TIFF and BigTIFF files with libtiff's own writer.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/image.h"

namespace stoker {

struct TiffKind {
  Size size;
  int samples = 3;  // per pixel: 1 gray, 2 gray and `extra`, 3 RGB, 4 RGB and alpha
  int bits = 8;
  int compression = 1;  // a number of tiff.h
  bool has_differences = false;
  bool is_separate = false;  // a plane for each sample
  Size tile = {};            // {0, 0}: strips
  int rows_per_strip = 0;    // 0: one strip
  bool is_big = false;       // BigTIFF
  bool is_big_endian = false;
  bool is_bit_reversed = false;  // FillOrder 2
  int extra = 0;                 // what the second sample of gray is, a number of tiff.h
  bool has_palette = false;      // colour i is (i, 255 - i, 7), instead of gray
};

// Whether this libtiff can write the compression.
bool can_make_tiff(int compression);

// `samples`: (height, width, samples); of 16 bits, of 8, or 0 and 1.
std::vector<uint8_t> make_tiff(const TiffKind& kind, const std::vector<uint16_t>& samples);

// The same with samples that compress a little, made from `seed`, which are returned in `samples`.
std::vector<uint8_t> make_tiff(const TiffKind& kind, uint32_t seed, std::vector<uint16_t>& samples);

}  // namespace stoker
