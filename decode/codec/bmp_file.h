// The layout of a BMP file: where its pixels are, and what their bits mean. Internal to
// CodecDecoder.
#pragma once

#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

struct BmpLayout {
  Size size;
  bool from_top = false;         // rows start at the top; else at the bottom, as usual
  int bits = 0;                  // per pixel: 1, 4, 8 (palette), 16, 24, 32
  bool is_packed = false;        // run-length coding of 4 or 8 bits
  int green_bits = 5;            // of a pixel of 16 bits; red and blue have 5
  uint8_t palette[256][3] = {};  // RGB; black where the file has fewer colours
  int64_t pixels_at = 0;
  int64_t row_bytes = 0;
  int red = 2, green = 1, blue = 0;  // which byte of a pixel of 24 or 32 bits
};

DecodeStatus read_bmp_layout(std::span<const uint8_t> bytes, BmpLayout& layout);

}  // namespace stoker
