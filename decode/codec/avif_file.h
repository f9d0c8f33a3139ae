// The properties of an AVIF file's picture, read before libavif sees it ("AV1 Image File Format",
// AVIF, and MIAF, ISO/IEC 23000-22): size, orientation, the memory that decoding takes, and whether
// all of it is there. Internal to the codecs.
//
// Accepted are still pictures of one coded picture or of a grid, with alpha or without, whose
// pixels libavif gives as Pillow does, and whose parts are not so many or so small that decoding
// them takes more memory than the plan has for them.
//
// Threads: any. Errors: a status. Memory: a table of the file's properties, while a call lasts.
#pragma once

#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

struct AvifHeader {
  Size size;
  // As Pillow's: from the rotation and the mirror image that the file asks for. EXIF's is ignored.
  int orientation = 1;
  // The memory plan has 15 bytes for each pixel; libavif takes more.
  int64_t planned_pixels = 0;
};

bool is_avif(std::span<const uint8_t> bytes);
DecodeStatus read_avif_header(std::span<const uint8_t> bytes, AvifHeader& header);

// Checks that all coded pictures are there, and are single pictures of the right size. REQUIRES:
// the header was read.
DecodeStatus check_avif_body(std::span<const uint8_t> bytes);

}  // namespace stoker
