// Pillow's antialiased resize (Image.resize of an 8-bit RGB image), byte for byte, for any crop and
// window. Algorithm: Pillow src/libImaging/Resample.c. The kernel of the filter (box, triangle,
// Hamming window, cubic with a = -0.5, Lanczos with 3 lobes) is stretched by the scale, and its
// coefficients are normalised in double and rounded to 22 fractional bits. One pass rounds to 8
// bits, then the other follows; the policy says which is first (pixel_policy.h). `nearest` takes
// the pixels that ImagingScaleAffine (Geometry.c) takes. A plain scalar twin checks it
// (tests/support/pillow_reference.h).
//
// Hamming and Lanczos use the sine of the C library, as Pillow does. A library whose last bit
// differs changes a weight's 22 bits in about one of 10^8 cases.
#pragma once

#include <cstdint>
#include <memory>

#include "decode/crop_spec.h"
#include "decode/image.h"
#include "decode/pixel_policy.h"

namespace stoker {

// Owner: one per worker, reused; keeps its scratch. Threads: one at a time.
class PillowResize {
 public:
  explicit PillowResize(PixelPolicy policy = PixelPolicy::exact);
  ~PillowResize();
  PillowResize(const PillowResize&) = delete;
  PillowResize& operator=(const PillowResize&) = delete;

  // Resizes the crop to spec.resized and writes spec.window of it, flipped if spec.flip, to `out`.
  // `crop_pixels` has only the pixels of the crop. REQUIRES: crop_pixels' size = spec.crop's, out's
  // = spec.window's.
  void run(ImageView crop_pixels, const CropSpec& spec, MutableImageView out);

  int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
