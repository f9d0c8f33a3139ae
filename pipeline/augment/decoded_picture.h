// The picture of a sample as decoding gives it, before anything random: what a cache keeps of a
// sample (decoded_cache.h), and what Augmenter makes rows of without its file. Values; they own
// nothing.
#pragma once

#include <cstdint>
#include <span>

#include "decode/crop_spec.h"

namespace stoker {

// Which pictures of a data set are kept; others are not.
struct DecodedForm {
  // Whole images, of which rows show parts; else what the decoder makes for a row, which is the
  // same in every epoch.
  bool is_whole = false;
  Size size{};  // of every picture
  int64_t bytes() const { return int64_t{3} * size.width * size.height; }
};

struct DecodedPicture {
  Size source{};                    // of the sample's image
  CropSpec crop{};                  // what of it the pixels show; not mirrored
  std::span<const uint8_t> pixels;  // (crop.window.height, crop.window.width, 3) u8; empty: none
};

// Returns whether both make the same pixels, but for the mirroring.
inline bool shows_the_same(const CropSpec& a, const CropSpec& b) {
  return a.crop == b.crop && a.resized == b.resized && a.window == b.window && a.filter == b.filter;
}

}  // namespace stoker
