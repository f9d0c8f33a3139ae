// Reads the pixels of each format except JPEG. Internal to CodecDecoder.
//
// Each function fills a frame, with the whole picture or with the region at least, from a file
// whose header read_codec_header() accepted and whose structure check_codec_body() found complete.
// TIFF's fills it again and again, with some rows of the region.
// Everything that it makes is destroyed when it returns. Errors: a status. CMake compiles the
// readers that need a library (tiff_reader.cc, webp_reader.cc), or without those libraries
// no_readers.cc, which refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "decode/codec/decoder.h"
#include "decode/codec/frame.h"
#include "decode/decode_status.h"

namespace stoker {

// Takes rows [begin, end) of the picture, which the frame has, before it gets others.
using TakeFrame = std::function<void(int begin, int end)>;

DecodeStatus read_bmp_pixels(std::span<const uint8_t> bytes, Box region, CodecFrame& frame);
DecodeStatus read_gif_pixels(std::span<const uint8_t> bytes, Box region, CodecFrame& frame);
DecodeStatus read_plugin_pixels(std::span<const uint8_t> bytes, const CodecHeader& header,
                                CodecFrame& frame);
DecodeStatus read_tiff_pixels(std::span<const uint8_t> bytes, Box region, CodecFrame& frame,
                              const TakeFrame& take);
DecodeStatus read_webp_pixels(std::span<const uint8_t> bytes, const CodecHeader& header, Box region,
                              CodecFrame& frame);

}  // namespace stoker
