// Decodes the bytes of an image file into finished RGB pixels in the caller's memory. This is the
// entry point of the folder.
//
// ImageDecoder looks at the signature. JPEG goes to CropDecoder, and what CropDecoder refuses goes
// to JpegDecoder (libjpeg-turbo, region of interest); everything else goes to
// decode/codec/decoder.h. What CropDecoder did not finish is resized as Pillow does
// (decode/resize/row_resizer.h).
//
// A decoder keeps no state between files: pixels and status of a file are those that a fresh
// decoder gives, whatever was decoded before. Only buffers, and tables that are looked up by their
// whole definition, are kept from image to image; everything else is made for one file and
// destroyed after it.
//
// Owner: one per worker thread, reused for every image; its scratch grows and is kept. Threads: one
// at a time. Errors: a status per image, never an exception for the content of a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/crop_decoder.h"
#include "decode/crop_spec.h"
#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

enum class ImageFormat : uint8_t { unknown, jpeg, png, bmp, webp, tiff, gif, pnm, jpeg2000, avif };

struct ImageInfo {
  ImageFormat format = ImageFormat::unknown;
  Size size;            // of the decoded pixels (after the EXIF policy)
  int orientation = 1;  // EXIF orientation 1..8; 1 if absent or not read
};

// ignore: as Pillow's open() and torchvision's ImageFolder. apply: as PIL.ImageOps.exif_transpose
// (of an EXIF orientation: XMP, in which Pillow looks as well, is not read).
enum class ExifPolicy : uint8_t { ignore, apply };

struct DecodeOptions {
  PixelPolicy pixels = PixelPolicy::exact;
  ExifPolicy exif = ExifPolicy::ignore;
  int64_t max_pixels = 178'956'970;  // Pillow's MAX_IMAGE_PIXELS * 2: where it refuses a "bomb"
};

// The most memory that one ImageDecoder takes, for outputs of this size and any input within
// max_pixels. Plan with `streamed` per worker; a single malicious or unusual file can take
// `whole_frame` while it is decoded.
struct ScratchBound {
  int64_t streamed;     // bytes for what is read by rows, of any size: a JPEG with one scan, a PNG
                        // that is not interlaced, a TIFF in strips (and a copy of a strip's bytes)
  int64_t whole_frame;  // bytes for a multi-scan (progressive) JPEG (its coefficients), for what
                        // has to be decoded as a whole (its frame), or a turned image (its crop)
};
ScratchBound decode_scratch_bound(const DecodeOptions& options, Size output);

// A library that is opened as a plugin for a format that no reader of ours has.
struct CodecPluginStatus {
  std::string format;   // "JPEG 2000"
  std::string library;  // "OpenJPEG"
  std::string version;  // "4.6.0"; empty if it cannot be used
  std::string problem;  // why, in one line
};
std::vector<CodecPluginStatus> query_codec_plugins();

class ImageDecoder {
 public:
  explicit ImageDecoder(const DecodeOptions& options = {});
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Reads the header only. On success `info` is filled and the size is within max_pixels.
  DecodeStatus info(std::span<const uint8_t> bytes, ImageInfo& info);

  // Decodes, converts to RGB as Pillow's convert("RGB"), crops, resizes and flips into `out`.
  // REQUIRES: out's size equals spec.window's. `out` is undefined unless the status is ok.
  // `seek_index` is the file's index (decode/jpeg/seek_index.h) if there is one: it makes baseline
  // JPEGs faster and changes neither pixels nor status.
  DecodeStatus decode(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out,
                      std::span<const uint8_t> seek_index = {});

  // As CropDecoder::decode_pieces(). After false, decode() of the whole file says what there is to
  // say about it.
  bool decode_pieces(const FilePieces& file, const CropSpec& spec, MutableImageView out,
                     std::span<const uint8_t> seek_index);

  // As CropDecoder's: notes places in the files that it reads, for an index of the last one.
  void record_places();
  std::span<const uint8_t> recorded_index() const;

  SeekUse seek_use() const;  // since construction
  // Returns the bytes of scratch held now.
  int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
