// The parts of a TIFF that libtiff reads: strips and tiles in compressions that are not ours, and
// YCbCr that is not compressed as JPEG. Internal to the codecs; only its source file uses libtiff.
//
// Owner: one TiffReader, for one file. Threads: one at a time. Errors: false, and problem(): the
// first message of libtiff. Memory: strips of pixels that have all samples beside each other are
// read line by line, with libtiff's copy of the compressed bytes; of tiles and of planes the part
// that is needed is held.
#pragma once

#include <memory>

#include "decode/codec/tiff_lines.h"
#include "decode/decode_status.h"

namespace stoker {

class LibtiffReader final : public TiffLines {
 public:
  LibtiffReader(std::span<const uint8_t> bytes, const TiffLayout& layout);
  ~LibtiffReader() override;

  // REQUIRES: the body was checked. Must be called first.
  DecodeStatus open();
  bool begin(const TiffPart& part) override;
  bool next(uint8_t* line) override;
  std::string problem() const override;

  // Converts rows of YCbCr to RGB, columns [x, x + width). The first row must be that of a part,
  // and all rows lie in it.
  bool convert(int first_row, int rows, int x, int width, uint8_t* rgb);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
