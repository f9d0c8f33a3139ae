// The crop-aware JPEG decoder makes a finished output from bytes and a CropSpec, without decoding
// what the crop does not show. decode/README.md explains how it works.
//
// It takes baseline and progressive Huffman JPEGs of 8 bits with 1 or 3 components (grey, YCbCr),
// any sampling (exact: the usual ones), with or without restart markers. It refuses everything
// else, and every file in which it meets anything odd; then JpegDecoder (libjpeg-turbo) decodes the
// file or reports what is wrong. So the two cannot disagree about which files are bad: a file that
// this one accepts has been checked at least as far as libjpeg-turbo reads for the same crop: a
// progressive file as a whole, and so with a seek index, when the index was made.
//
// Pixels: the same bytes on every CPU. Owner: one per worker, reused for every image. Threads: one
// at a time. Memory: grows to the largest crop and file met, at most kMaxCropScratch; while a
// progressive file is decoded, its coefficients come on top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "decode/crop_spec.h"
#include "decode/file_pieces.h"
#include "decode/image.h"
#include "decode/pixel_policy.h"

namespace stoker {

// The most memory that one decoder holds. CropDecoder refuses crops and files that would need more;
// JpegDecoder streams them by scan lines.
inline constexpr int64_t kMaxCropScratch = int64_t{72} << 20;

// The most memory beyond that, in bytes per pixel of max_pixels, while a progressive file is
// decoded: 2 bytes for each of three samples, and 8 for each of their blocks of 64, rounded up.
inline constexpr int64_t kProgressiveBytesPerPixel = 8;

// In a smaller scan a position saves less time than noting it takes.
inline constexpr size_t kMinRecordedScan = size_t{8} << 10;

// Counts what happened to the indexes that a decoder was given. An index is ignored where a crop
// shows nearly all of an image.
struct SeekUse {
  int64_t used = 0;
  int64_t refused = 0;       // not of the file's bytes, or damaged
  int64_t unread_bytes = 0;  // of files that were used in pieces: what was not there

  SeekUse operator-(const SeekUse& other) const {
    return {used - other.used, refused - other.refused, unread_bytes - other.unread_bytes};
  }
};

class CropDecoder {
 public:
  CropDecoder(int64_t max_pixels, PixelPolicy policy);
  ~CropDecoder();
  CropDecoder(const CropDecoder&) = delete;
  CropDecoder& operator=(const CropDecoder&) = delete;

  // Returns true if `out` is finished. Returns false if this decoder does not take the file; `out`
  // is then undefined. `seek_index` is the file's index (decode/jpeg/seek_index.h) if there is one:
  // neither the pixels nor the return value depend on it.
  bool decode(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out,
              std::span<const uint8_t> seek_index = {});
  // Does the same with those bytes of a baseline JPEG that the crop needs, by its index
  // (decode/jpeg/crop_bytes.h). The pixels are those of the whole file; but false says nothing
  // about the file, only that the pieces do not do.
  bool decode_pieces(const FilePieces& file, const CropSpec& spec, MutableImageView out,
                     std::span<const uint8_t> seek_index);

  // From now on, notes where rows of MCUs begin while it reads a scan of at least `scan_bytes`, if
  // that could help the file's next crops. Off at first.
  void record_places(size_t scan_bytes = kMinRecordedScan);
  // Returns a new index of the file of the last decode(), which has more rows than the one that was
  // given; empty if there is none. Valid until the next decode().
  std::span<const uint8_t> recorded_index() const;

  SeekUse seek_use() const;  // since construction
  int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
