// The crop-aware JPEG decoder: bytes + CropSpec -> the finished row, without decoding what the crop
// does not show. decode/README.md explains how it works.
//
// For baseline Huffman JPEGs of 8 bits with 1 or 3 components (grey, YCbCr), any sampling (exact:
// the usual ones), with or without restart markers. Everything else, and every file in which it
// meets anything odd, is "not for me": then JpegDecoder (libjpeg-turbo) decodes, or says what is
// wrong. So the two cannot disagree about which files are bad: what this one accepts it has checked
// at least as far as libjpeg-turbo reads for the same crop, or, with a seek index, all of it when
// that was made.
//
// Pixels: the same bytes on every CPU. Owner: one per worker, reused for every image. Threads: one
// at a time. Memory: grows to the largest crop and file met, at most kMaxCropScratch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "decode/crop_spec.h"
#include "decode/image.h"
#include "decode/pixel_policy.h"

namespace stoker {

// What one decoder holds at most. Crops and files that would need more are not for CropDecoder;
// JpegDecoder streams them by scan lines.
inline constexpr int64_t kMaxCropScratch = int64_t{72} << 20;

// What became of the indexes that a decoder was given. Where a crop shows nearly all of an image,
// an index is not even looked at.
struct SeekUse {
  int64_t used = 0;
  int64_t refused = 0;  // not of the file's bytes, or damaged
};

class CropDecoder {
 public:
  CropDecoder(int64_t max_pixels, PixelPolicy policy);
  ~CropDecoder();
  CropDecoder(const CropDecoder&) = delete;
  CropDecoder& operator=(const CropDecoder&) = delete;

  // True: `out` is finished. False: not for this decoder; `out` is undefined. `seek_index` is the
  // file's index (decode/jpeg/seek_index.h) if there is one: neither the pixels nor the answer
  // depend on it.
  bool decode(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out,
              std::span<const uint8_t> seek_index = {});

  SeekUse seek_use() const;  // so far
  int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
