// The headers of BMP, GIF, WebP and JPEG 2000 files: the size of the picture, and where its pixels
// are. AVIF, PNG, Netpbm and TIFF have headers of their own. Internal to the codecs.
//
// Threads: any. Errors: a status. Memory: none but the structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

// The layout of a BMP file, and the meaning of its bits.
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

// The blocks of a GIF down to its first image, read as Pillow reads them, quirks included; without
// a palette that is one, colours are shades of gray.
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

// The boxes and the main header of a JPEG 2000 file (ISO/IEC 15444-1), whose pixels
// OpenJPEG decodes.
// Accepted are the files whose pixels are Pillow's, and whose tables are small compared
// with their pixels, so that a few bytes cannot take much memory: one to four channels of 8 bits
// without a palette, in RGB or gray, with tiles, precincts and code blocks that are not tiny.
bool is_jpeg2000(std::span<const uint8_t> bytes);
DecodeStatus read_jpeg2000_header(std::span<const uint8_t> bytes, Size& size);

// Checks that all parts of all tiles are there. REQUIRES: the header was read.
DecodeStatus check_jpeg2000_body(std::span<const uint8_t> bytes);

}  // namespace stoker
