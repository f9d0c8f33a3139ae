// Everything but JPEG, through OpenCV's imgcodecs: PNG, BMP, WebP, TIFF. CMake takes either
// opencv_decoder.cc or, without OpenCV, no_opencv_decoder.cc (which refuses). Headers are read
// here, so info() works and max_pixels holds either way.
//
// What becomes of what (tested against Pillow's convert("RGB")); what OpenCV would give in other
// colours than Pillow is refused as unsupported, not approximated:
//
//  PNG   gray 1, 2, 4, 8 bits    scaled to 0..255, copied to R, G, B
//        gray 16 bits            clipped to 255, not scaled (Pillow's mode "I")
//        RGB, palette            as they are; transparency is ignored
//        RGB, alpha 16 bits      the high byte of each sample
//        gray or RGB with alpha  alpha is dropped, not blended
//        animated                the default image
//  BMP   1, 4, 8, 24, 32 bits    as they are; alpha is dropped. 16 bits and RLE: refused
//  WebP  lossy, lossless         alpha is dropped. Animated: refused
//  TIFF  gray 1, 8 bits, RGB 8   as they are (white-is-zero is inverted)
//        gray 16 bits            clipped to 255; RGB 16 bits: the high byte
//        palette, alpha, CMYK, YCbCr, Lab, floats, separate planes, an orientation, BigTIFF:
//        refused
//
// A file that is shorter than its structure says is truncated; PNG checksums are verified.
// Owner: one per worker. Threads: one at a time; starts none. Memory: the whole frame.
// Errors: a status, never an exception. Some of OpenCV's codecs print to standard error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"
#include "decode/image_decoder.h"
#include "decode/row_resizer.h"

namespace stoker {

enum class SampleRule : uint8_t { as_is, clip_16_bits, high_byte_of_16 };

struct CodecHeader {
  ImageFormat format = ImageFormat::unknown;
  Size size;  // as stored
  int orientation = 1;
  SampleRule samples = SampleRule::as_is;
};

// Reads the header of a file of header.format; refuses variants as the table says.
DecodeStatus read_codec_header(std::span<const uint8_t> bytes, CodecHeader& header);

// Does the file hold all that its structure promises? (Reads the file once at most.)
DecodeStatus check_codec_body(std::span<const uint8_t> bytes, const CodecHeader& header);

class CodecDecoder {
 public:
  CodecDecoder();
  ~CodecDecoder();
  CodecDecoder(const CodecDecoder&) = delete;
  CodecDecoder& operator=(const CodecDecoder&) = delete;

  // Gives the rows of `region` to `sink`. REQUIRES: the header is that of `bytes`, the body was
  // checked, the region lies inside.
  DecodeStatus decode(std::span<const uint8_t> bytes, const CodecHeader& header, Box region,
                      RowSink& sink);

  int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
