// The boxes and the main header of a JPEG 2000 file (ISO/IEC 15444-1): what its pixels are, and
// whether all of it is there. OpenCV decodes the pixels. Internal to the codecs.
//
// Accepted are the files whose pixels are Pillow's in OpenCV, and whose tables are small compared
// with their pixels, so that a few bytes cannot take much memory: one to four channels of 8 bits
// without a palette, in RGB or gray, with tiles, precincts and code blocks that are not tiny.
//
// Threads: any. Errors: a status. Memory: none.
#pragma once

#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

bool is_jpeg2000(std::span<const uint8_t> bytes);
DecodeStatus read_jpeg2000_header(std::span<const uint8_t> bytes, Size& size);

// Checks that all parts of all tiles are there. REQUIRES: the header was read.
DecodeStatus check_jpeg2000_body(std::span<const uint8_t> bytes);

}  // namespace stoker
