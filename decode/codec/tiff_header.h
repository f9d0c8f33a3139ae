// Reads the first directory of a TIFF file: its size, and how its samples must be read to give
// Pillow's colours. Internal to CodecDecoder.
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
  uint32_t samples = 1;      // per pixel; the frame has the first of them
  uint32_t bits = 1;         // per sample: 1, 2, 4, 8, 16
  bool is_separate = false;  // a plane for each sample
  bool is_ycc = false;
  bool has_palette = false;
  uint8_t palette[256][3] = {};  // RGB
  int orientation = 1;           // as in EXIF; Pillow always turns a TIFF by it
};

DecodeStatus read_tiff_layout(std::span<const uint8_t> bytes, TiffLayout& layout);

// Checks that all strips or tiles are inside the file.
DecodeStatus check_tiff_body(std::span<const uint8_t> bytes);

}  // namespace stoker
