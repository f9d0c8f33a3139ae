// The pixels of each format but JPEG. Internal to CodecDecoder.
//
// Each function fills a frame from a file whose header read_codec_header() took and whose structure
// check_codec_body() found whole. It owns all that it makes; nothing lives longer than the call.
// Errors: a status. CMake takes the readers that need a library (png_reader.cc, tiff_reader.cc,
// webp_reader.cc), or without those libraries no_readers.cc, which refuses.
#pragma once

#include <cstdint>
#include <span>

#include "decode/codec/decoder.h"
#include "decode/codec/frame.h"
#include "decode/decode_status.h"

namespace stoker {

DecodeStatus read_bmp_pixels(std::span<const uint8_t> bytes, CodecFrame& frame);
DecodeStatus read_png_pixels(std::span<const uint8_t> bytes, const CodecHeader& header,
                             CodecFrame& frame);
DecodeStatus read_tiff_pixels(std::span<const uint8_t> bytes, const CodecHeader& header,
                              CodecFrame& frame);
DecodeStatus read_webp_pixels(std::span<const uint8_t> bytes, const CodecHeader& header,
                              CodecFrame& frame);

}  // namespace stoker
