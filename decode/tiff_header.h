// The first directory of a TIFF file: enough to know its size and whether OpenCV would give
// Pillow's colours. Part of codec_decoder.h's work.
#pragma once

#include <cstdint>
#include <span>

#include "decode/codec_decoder.h"
#include "decode/decode_status.h"

namespace stoker {

DecodeStatus read_tiff_header(std::span<const uint8_t> bytes, CodecHeader& header);

// Do all strips or tiles lie inside the file?
DecodeStatus check_tiff_body(std::span<const uint8_t> bytes);

}  // namespace stoker
