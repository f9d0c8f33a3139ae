// The layout of a PGM or PPM file: where its pixels are. Internal to CodecDecoder.
//
// Its pixels are read in place: gray or RGB values of 8 bits, without padding between rows.
#pragma once

#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

struct PnmLayout {
  Size size;
  int channels = 3;  // 1: gray (P5); 3: RGB (P6)
  int64_t pixels_at = 0;
  int64_t row_bytes() const { return int64_t{size.width} * channels; }
};

DecodeStatus read_pnm_layout(std::span<const uint8_t> bytes, PnmLayout& layout);

// Writes columns [x, x + width) of a row as RGB. REQUIRES: the file has all its pixels.
void read_pnm_row(std::span<const uint8_t> bytes, const PnmLayout& layout, int y, int x, int width,
                  uint8_t* to);

}  // namespace stoker
