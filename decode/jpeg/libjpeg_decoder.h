// JPEG through libjpeg-turbo: the exact path, the fallback and the oracle of faster decoders. Only
// the rows and columns that a region needs go through the inverse DCT, decoding stops after the
// last row, and the pixels are bit for bit those of a full decode (which are Pillow's: islow DCT,
// fancy upsampling, convert("RGB")).
//
// Owner: one per worker, reused for every image. Threads: one at a time. Memory: rows, not frames
// (see decode_scratch_bound), except that progressive and other multi-scan files keep all their
// coefficients while they are decoded.
// Errors: a status per image. Warnings of libjpeg are corruption, but for
// stray bytes between the segments of the header and unknown versions of JFIF and Adobe. A file
// without an end marker after its first scan header is truncated, whatever the region; what follows
// the marker is not looked at. Other damage counts where it is met: between the start of the file
// and the last row that the region's pixels depend on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"
#include "decode/resize/row_resizer.h"

namespace stoker {

class JpegDecoder {
 public:
  explicit JpegDecoder(int64_t max_pixels);
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header: the size as stored. What open() and close() say, but most headers take a
  // tenth of their time: they are read without libjpeg.
  DecodeStatus info(std::span<const uint8_t> bytes, Size& size);

  // Reads the header, too. Allocates nothing that depends on the size. `bytes` must live until
  // read() or close().
  DecodeStatus open(std::span<const uint8_t> bytes, Size& size);

  // Gives the rows of `region` (stored coordinates) to `sink`, from top to bottom, and closes the
  // file. REQUIRES: open() was ok and nothing happened since.
  DecodeStatus read(Box region, RowSink& sink);

  // Ends what open() began, if read() did not.
  void close();

  // All of it, into memory. REQUIRES: out's size equals region's.
  DecodeStatus decode(std::span<const uint8_t> bytes, Box region, MutableImageView out);

  // The bytes of scratch kept between images; libjpeg's own are freed after each image.
  int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
