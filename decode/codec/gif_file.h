// The blocks of a GIF down to its first image: the canvas, the colours, and where the image lies.
// Internal to the codecs. They are read as Pillow reads them, quirks included; without a palette
// that is one, colours are shades of gray.
//
// Threads: any. Errors: a status. Memory: none but the struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

struct GifLayout {
  Size size;  // of the canvas, made larger where the image does not fit
  Box box;    // of the image on it
  bool is_interlaced = false;
  uint8_t colours[256][3] = {};  // RGB; black where the palette has fewer
  uint8_t background = 0;        // the colour of the canvas where the image is not
  int code_bits = 8;             // of a pixel's index, in the compressed data
  size_t data_at = 0;            // the first block of these
};

DecodeStatus read_gif_layout(std::span<const uint8_t> bytes, GifLayout& layout);

// Checks that the image's blocks are there.
DecodeStatus check_gif_blocks(std::span<const uint8_t> bytes, const GifLayout& layout);

}  // namespace stoker
