// Decodes JPEG through libjpeg-turbo: the exact path, the fallback, and the reference for faster
// decoders. Only the rows and columns that a region needs go through the inverse DCT, decoding
// stops after the last row, and the pixels are bit for bit those of a full decode (which are
// Pillow's: islow DCT, fancy upsampling, convert("RGB")).
//
// Owner: one per worker, reused for every image. Threads: one at a time. Memory: rows, not frames
// (see decode_scratch_bound), except that progressive and other multi-scan files keep all their
// coefficients while they are decoded. Errors: a status per image. Warnings of libjpeg count as
// corruption, except stray bytes between the segments of the header and unknown versions of JFIF
// and Adobe. A file without an end marker after its first scan header is truncated, whatever the
// region; bytes after the marker are ignored. Other damage counts if it is found between the start
// of the file and the last row that the region's pixels depend on.
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

  // Reads the header and sets the size as stored. Gives the same result as open() and close(), but
  // reads most headers without libjpeg, in a tenth of the time.
  DecodeStatus info(std::span<const uint8_t> bytes, Size& size);

  // Reads the header and keeps the file open. Allocates nothing that depends on the size. `bytes`
  // must live until read() or close().
  DecodeStatus open(std::span<const uint8_t> bytes, Size& size);

  // Passes the rows of `region` (stored coordinates) to `sink`, from top to bottom, and closes the
  // file. REQUIRES: open() was ok, and no other call since.
  DecodeStatus read(Box region, RowSink& sink);

  // Closes what open() opened, if read() did not.
  void close();

  // Opens the file and reads `region` into `out`. REQUIRES: out's size equals region's.
  DecodeStatus decode(std::span<const uint8_t> bytes, Box region, MutableImageView out);

  // Returns the bytes of scratch kept between images; libjpeg's own are freed after each image.
  int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
