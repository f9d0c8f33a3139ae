// Describes which pixels of a source image become the output: crop, resize, window, flip. The
// source pixels outside `crop` are not used (as in PIL's img.crop(box).resize(size), which
// torchvision's resized_crop does); of the resized crop only `window` is produced (Resize +
// CenterCrop in one step).
#pragma once

#include "decode/image.h"

namespace stoker {

// The filters of Pillow's Image.resize. All but `nearest` are antialiased: they are stretched where
// the image gets smaller. The numbers are in the fingerprints of stored runs.
enum class Filter : uint8_t {
  bilinear = 0,
  bicubic = 1,
  nearest = 2,
  box = 3,
  hamming = 4,
  lanczos = 5
};
inline constexpr int kFilterCount = 6;

struct CropSpec {
  Box crop;           // in source pixels; lies inside the image
  Size resized;       // the crop is resized to this; equal to the crop's size = no resampling
  Box window;         // in pixels of `resized`; its size is the output's size
  bool flip = false;  // mirror the window left-right, last
  Filter filter = Filter::bilinear;
};

// Returns a part of the source image that has all pixels that the output is made from: the crop, or
// less of it if the window is a part of what the crop is resized to. REQUIRES: spec is sane.
Box source_box(const CropSpec& spec);

}  // namespace stoker
