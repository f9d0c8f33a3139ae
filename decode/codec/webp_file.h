// The chunks of a WebP file: its canvas, and where the pixels of its first frame lie. Internal to
// the codecs. Threads: any. Errors: a status.
#pragma once

#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

struct WebpHeader {
  Size size;  // of the canvas
  int orientation = 1;
};

// The first frame, or the only picture.
struct WebpFrame {
  Box box;                        // on the canvas
  std::span<const uint8_t> data;  // of the chunk that has its pixels; alpha is in another one
};

DecodeStatus read_webp_header(std::span<const uint8_t> bytes, WebpHeader& header);

// REQUIRES: the header was read. The box lies on the canvas.
DecodeStatus find_webp_frame(std::span<const uint8_t> bytes, Size canvas, WebpFrame& frame);

}  // namespace stoker
