// The oracle of CropDecoder: libjpeg-turbo decodes the crop, and RowResizer resizes it as Pillow
// does. ImageDecoder does the same with JPEG files that CropDecoder refuses.
#pragma once

#include <cstdint>
#include <span>

#include "decode/jpeg/libjpeg_decoder.h"
#include "decode/resize/row_resizer.h"

namespace stoker {

class LibjpegPath {
 public:
  explicit LibjpegPath(int64_t max_pixels, PixelPolicy policy = PixelPolicy::exact)
      : jpeg_(max_pixels), resizer_(policy) {}

  // REQUIRES: spec is sane; out's size equals spec.window's.
  DecodeStatus decode(std::span<const uint8_t> file, const CropSpec& spec, MutableImageView out) {
    Size size;
    const DecodeStatus status = jpeg_.open(file, size);
    if (!status.ok()) return status;
    if (!lies_inside(spec.crop, size)) {
      jpeg_.close();
      return {DecodeCode::bad_region, -1, "the crop does not lie inside the image"};
    }
    Box needed = resizer_.begin(spec, out);
    needed.x += spec.crop.x;
    needed.y += spec.crop.y;
    return jpeg_.read(needed, resizer_);
  }

 private:
  JpegDecoder jpeg_;
  RowResizer resizer_;
};

}  // namespace stoker
