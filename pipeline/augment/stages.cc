#include "pipeline/augment/stages.h"

#include <algorithm>

namespace stoker {

std::span<const StageType* const> all_stages() {
  static constexpr const StageType* kAll[] = {&kRandomResizedCrop,
                                              &kResizeCenterCrop,
                                              &kResize,
                                              &kResizeKeepRatio,
                                              &kCenterCrop,
                                              &kCornerCrop,
                                              &kRandomCrop,
                                              &kTrimBorder,
                                              &kPad,
                                              &kFlip,
                                              &kVerticalFlip,
                                              &kRotate,
                                              &kAffine,
                                              &kPerspective,
                                              &kColorJitter,
                                              &kGrayscale,
                                              &kInvert,
                                              &kPosterize,
                                              &kSolarize,
                                              &kEqualize,
                                              &kAutocontrast,
                                              &kSharpness,
                                              &kGaussianBlur,
                                              &kPillowBlur,
                                              &kRandomApply,
                                              &kRandomChoice,
                                              &kRandomOrder,
                                              &kRandomAugment,
                                              &kTrivialAugment,
                                              &kAutoAugment,
                                              &kAugMix,
                                              &kTimmAutoAugment,
                                              &kCutout,
                                              &kRandomErasing,
                                              &kOperation,
                                              &kMix,
                                              &kViews,
                                              &kFiveCrop,
                                              &kTenCrop};
  return kAll;
}

const StageType* find_stage(std::string_view name) {
  const auto all = all_stages();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const StageType* type) { return type->name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace stoker
