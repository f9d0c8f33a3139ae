// The operations of timm's policies, and what a magnitude means for each of them: timm 1.0,
// timm/data/auto_augment.py (NAME_TO_OP, LEVEL_TO_ARG). Pixels are those of its calls of Pillow.
#pragma once

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage.h"

namespace stoker {

// "increasing": the larger the magnitude, the further from the image. Without it, posterize and
// solarize change less, and factors of colours go from 0.1 to 1.9.
enum class TimmOp : uint8_t {
  auto_contrast,
  equalize,
  invert,
  rotate,
  posterize,
  posterize_increasing,
  posterize_original,
  solarize,
  solarize_increasing,
  solarize_add,
  color,
  color_increasing,
  contrast,
  contrast_increasing,
  brightness,
  brightness_increasing,
  sharpness,
  sharpness_increasing,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  desaturate,
  gaussian_blur,
  gaussian_blur_random  // up to the radius that the magnitude says
};

// How large an operation's magnitude is drawn; 10 is its usual most.
struct TimmMagnitude {
  double mean = 10;
  double deviation = 0;  // of a normal number; infinity: evenly between 0 and the mean
  double most = 10;      // larger ones are cut off to it, negative ones to 0
};

struct TimmOptions {
  WarpOptions warp{};
  bool either = false;      // bilinear or bicubic by equal chances, in place of warp.interpolation
  double translate = 0.45;  // share of the side at magnitude 10
};

// So many numbers of the key belong to an operation.
inline constexpr uint32_t kTimmDraws = 4;

// Draws the magnitude, and the numbers that the operation draws itself, and appends its step, or
// none if it changes nothing. Takes the key's numbers from `first` on.
void draw_timm_op(Draws& draws, const RandomKey& key, uint32_t first, TimmOp op,
                  const TimmMagnitude& magnitude, const TimmOptions& options);

}  // namespace stoker
