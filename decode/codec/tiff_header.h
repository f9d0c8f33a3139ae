// The first directory of a TIFF file: its size, and how its samples are to be read to give Pillow's
// colours. Part of decoder.h's work.
#pragma once

#include <cstdint>
#include <span>

#include "decode/codec/frame.h"
#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

struct TiffLayout {
  Size size;
  FrameColours colours = FrameColours::rgb;
  uint32_t photometric = 0;
  uint32_t compression = 1;
  uint32_t samples = 1;      // per pixel, of which the frame has the first
  uint32_t bits = 1;         // per sample: 1, 2, 4, 8, 16
  bool is_separate = false;  // a plane for each sample
  bool is_ycc = false;
};

DecodeStatus read_tiff_layout(std::span<const uint8_t> bytes, TiffLayout& layout);

// Do all strips or tiles lie inside the file?
DecodeStatus check_tiff_body(std::span<const uint8_t> bytes);

}  // namespace stoker
