// The table of stages, in the order in which they are listed, and those that stand around a list.
#pragma once

#include "pipeline/augment/mix.h"
#include "pipeline/augment/pixel_operation.h"
#include "pipeline/augment/stage.h"

namespace stoker {

// Each is a file of stage/. The last five are no stages of a sample's list but stand around it:
// AugmentSpec reads these.
#define STOKER_STAGES                                                                          \
  kRandomResizedCrop, kResizeCenterCrop, kResize, kResizeKeepRatio, kResizeCover, kCenterCrop, \
      kCornerCrop, kRandomCrop, kRandomSizeCrop, kTrimBorder, kPad, kRandomShortestSize,       \
      kRandomResize, kScaleJitter, kFixedSizeCrop, kLetterbox, kPadToSize, kRandomZoomOut,     \
      kRandomIouCrop, kClampBoxes, kSanitizeBoxes, kMosaic, kMixup, kCopyPaste, kFlip,         \
      kVerticalFlip, kRotate, kAffine, kPerspective, kColorJitter, kRandomPhotometricDistort,  \
      kRandomHsv, kGrayscale, kInvert, kPosterize, kSolarize, kEqualize, kAutocontrast,        \
      kSharpness, kGaussianBlur, kPillowBlur, kRandomApply, kRandomChoice, kRandomOrder,       \
      kRandomAugment, kTrivialAugment, kAutoAugment, kAugMix, kTimmAutoAugment, kCutout,       \
      kRandomErasing, kDropText, kSame, kOperation, kMix, kViews, kFiveCrop, kTenCrop, kPictures
extern const StageType STOKER_STAGES;

// The words of corner_crop, in five_crop's order.
inline constexpr const char* kCornerNames[] = {"top_left", "top_right", "bottom_left",
                                               "bottom_right"};

// The options of mix(...), and its text.
MixSpec mix_of(const StageText& text);
std::string mix_text(const MixSpec& mix);
// The views of views(...), one after the other, with the sizes that their lists end with ({}: the
// row's).
std::vector<AugmentView> views_of(const StageText& text);
// Those of pictures(...), with the pictures' names; the first is the sample's own.
std::vector<AugmentView> pictures_of(const StageText& text);
// The views of a list that ends with five_crop or ten_crop, and in `text` the list itself; none for
// any other list. The stages before draw the same numbers for each view that has the same seed.
std::vector<AugmentView> crops_of(std::vector<StageText> texts, std::string& text);

// A stage of an operation that no text names. Throws std::invalid_argument for a name that is no
// word, and for an operation without a function.
Stage operation_stage(const PixelOperation& operation);

}  // namespace stoker
