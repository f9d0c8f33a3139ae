// Gives the samples of a source as image files: those of files with their bytes as they are, raw
// ones (CIFAR's, synthetic ones) as PNG files with the same pixels. Owner: the command; the source
// outlives it. Keeps its buffers. Threads: one at a time. Errors: a Finding per sample.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "pipeline/source.h"
#include "pipeline/source/sample_checker.h"

namespace stoker {

struct ImageFile {
  std::string name;                // as Source::name(); for raw samples with ".png" after it
  std::string extension;           // of the format that the bytes have: jpg, png, webp, bmp, tif
  std::span<const uint8_t> bytes;  // valid until the next read()
};

class ImageFileReader {
 public:
  explicit ImageFileReader(const Source& source);

  // Fills `file`. If the sample cannot be read, or does not begin as an image that stoker decodes,
  // fills `finding` and returns false. The pixels of files are not looked at.
  bool read(SampleId id, ImageFile& file, Finding& finding);

 private:
  ImageView pixels_of(std::span<const uint8_t> raw);

  const Source& source_;
  ImageDecoder decoder_;
  std::vector<uint8_t> buffer_, pixels_, png_;
};

}  // namespace stoker
