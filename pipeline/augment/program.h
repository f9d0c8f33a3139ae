// Runs drawn steps on pixels. The first steps, as far as that gives the same bytes, are done by
// whoever decodes the image: the decoder reads, and makes, only what is left of it.
#pragma once

#include <string>
#include <vector>

#include "decode/crop_spec.h"
#include "decode/pillow_resize.h"
#include "decode/pixel/scratch.h"
#include "decode/pixel_ops.h"
#include "decode/scratch_vector.h"
#include "pipeline/augment/draws.h"

namespace stoker {

// The steps that a decoder does in one go: crop, resize, a window of that, then a shift with
// padding, then a flip.
struct DecodePlan {
  CropSpec crop;  // flip: only if there is no shift
  int shift_x = 0, shift_y = 0;
  PadMode padding = PadMode::zero;
  bool flip = false;  // last, whether there is a shift or not
  size_t steps = 0;   // so many of the first steps are done by the plan
  bool is_shifted() const { return shift_x != 0 || shift_y != 0; }
};
DecodePlan plan_decode(const Draws& draws);

// Returns a part of an image of `size` that has all pixels that are seen after the steps.
Box seen_part(std::span<const PixelStep> steps, Size size);

inline size_t image_bytes(Size size) {
  return size_t{3} * static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
}

// Owner: one per worker, reused; keeps its scratch. Threads: one at a time.
class StepRunner {
 public:
  StepRunner(PixelPolicy policy, int64_t max_pixels) : resize_(policy), max_pixels_(max_pixels) {}

  // Prepares `steps`, whose last size is that of `out`. Returns where the image of `size` belongs
  // that the first of them takes: `out` or a part of it, or memory of the runner. `problem`: an
  // image on the way would have too many pixels; then nothing is to be done.
  MutableImageView begin(std::span<const PixelStep> steps, Size size, MutableImageView out,
                         std::string& problem);
  // Runs the steps of begin(); the result is in its `out`. Throws what a user's operation throws.
  void run();

  int64_t scratch_bytes() const;

 private:
  MutableImageView memory(size_t which, Size size);
  void make(const PixelStep& step, MutableImageView out);
  bool is_cropped_warp(size_t step) const;
  void make_cropped(const PixelStep& warp, const PixelStep& crop, MutableImageView out);
  size_t join_tables(size_t first);
  bool blend(const PixelStep& step);

  PillowResize resize_;
  const int64_t max_pixels_;
  PixelScratch scratch_;
  ScratchVector<uint8_t> images_[2];  // in turn
  std::span<const PixelStep> steps_;
  size_t last_made_ = 0;  // the number of the last step that makes an image, plus 1
  size_t border_ = 0;     // that of a constant padding after it, for which out_ has room
  MutableImageView image_, out_;
  MutableImageView inner_;  // the part of out_ that last_made_ makes: all of it, or what is padded
  size_t next_ = 0;         // of images_
  ScratchVector<uint8_t> kept_;  // the image that copies are blended with
  ScratchVector<float> sum_;     // of the blended bytes
};

}  // namespace stoker
