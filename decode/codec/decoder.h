// Decodes every format except JPEG: PNG, GIF, BMP and Netpbm with our own readers, WebP and TIFF
// through the libraries of their authors (libwebp, libtiff). CMake compiles the readers that need a
// library or, where one is missing (STOKER_CODECS=OFF), functions that refuse. Headers are parsed
// here, so info() works and max_pixels holds either way.
//
// OpenJPEG is used for JPEG 2000 and libavif for AVIF, both as plugins (codec_plugin.h).
//
// A file that is shorter than its structure says is truncated; PNG checksums are verified.
// Owner: one per worker. Threads: one at a time; starts none. Memory: the whole frame, but of PNG
// and Netpbm only some rows (of an interlaced PNG, the region); of TIFF some rows of a strip, the
// region of a row of tiles, or of a strip of each plane, with what libtiff holds of a part.
// Errors: a status, never an exception; nothing is printed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"
#include "decode/image_decoder.h"
#include "decode/resize/row_resizer.h"

namespace stoker {

// The table shows how each variant becomes RGB (tested against Pillow's convert("RGB")). A variant
// whose pixels would differ from Pillow's is refused as unsupported, not approximated
// (decode/README.md has the list):
//
//  PNG   gray 1, 2, 4, 8 bits    scaled to 0..255, copied to R, G, B
//        gray 16 bits            clipped to 255, not scaled (Pillow's mode "I")
//        RGB, palette            as they are; transparency is ignored
//        RGB, alpha 16 bits      the high byte of each sample
//        gray or RGB with alpha  alpha is dropped, not blended
//        animated                the default image
//  BMP   1, 4, 8, 24, 32 bits    as they are, bit fields of whole bytes, too; alpha is dropped
//        16 bits                 5 or 6 bits of a colour are scaled to 0..255
//        runs of 4, 8 bits       as they are; what is left out has the first colour
//  PBM   text, binary          black and white (P1, P4)
//  PGM   text, binary          scaled to 255, copied to R, G, B (P2, P5); values above 255 are
//                              scaled to 65535 and clipped to 255 (Pillow's mode "I")
//  PPM   text, binary          scaled to 255 (P3, P6)
//  WebP  lossy, lossless         alpha is dropped
//        animated                the first frame, on black
//  GIF   the first frame         as it is, on its canvas, which has the transparent colour or the
//                                first one; a palette of shades of gray is the identity
//  JPEG 2000  gray, RGB, 8 bits  as they are; alpha is dropped
//  AVIF  8, 10, 12 bits          as libavif converts them to 8 bits, gray or colours; a clean
//                                aperture is ignored
//        alpha                   dropped; divided out where colours were multiplied by it
//        grids                   the same
//        orientation             that of the file's rotation and mirror image, not EXIF's
//  TIFF  gray 1, 2, 4, 8 bits    scaled to 0..255 (white-is-zero is inverted)
//        gray 16 bits            clipped to 255
//        RGB 8, 16 bits          as they are; the high byte
//        alpha                   dropped; divided out where colours were multiplied by it
//        CMYK 8 bits             as Pillow's
//        YCbCr, compressed       as libtiff converts it
//        palette 1, 2, 4, 8 bits as they are, the high byte of each colour
//        orientation             turned, under any ExifPolicy, as Pillow does
//        strips, tiles, planes   in all compressions that libtiff has, but the JPEG of TIFF 6.0
//        BigTIFF                 the same

struct CodecHeader {
  ImageFormat format = ImageFormat::unknown;
  Size size;  // as stored
  int orientation = 1;
  bool is_always_turned = false;  // as Pillow turns TIFF, whatever ExifPolicy says
  // The pixels that max_pixels counts, where a library takes more memory for a pixel than the plan
  // has (15 bytes, decode_scratch_bound()); 0: the pixels.
  int64_t planned_pixels = 0;
};

// Reads the header of a file in header.format; refuses the variants that the table lacks.
DecodeStatus read_codec_header(std::span<const uint8_t> bytes, CodecHeader& header);

// Checks that the file has all the data that its structure declares. Reads it once at most.
DecodeStatus check_codec_body(std::span<const uint8_t> bytes, const CodecHeader& header);

class CodecDecoder {
 public:
  CodecDecoder();
  ~CodecDecoder();
  CodecDecoder(const CodecDecoder&) = delete;
  CodecDecoder& operator=(const CodecDecoder&) = delete;

  // Passes the rows of `region` to `sink`. REQUIRES: the header is that of `bytes`, the body was
  // checked, the region lies inside.
  DecodeStatus decode(std::span<const uint8_t> bytes, const CodecHeader& header, Box region,
                      RowSink& sink);

  int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
