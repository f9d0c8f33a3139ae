// The steps on colours, which several stages and the policies use: those of Pillow's ImageEnhance
// and ImageOps (decode/pixel/colour.h says how each is computed).
#pragma once

#include "pipeline/augment/draws.h"

namespace stoker {

// One number: the factor. 1 leaves the image as it is; 0 for hue.
extern const PixelKind kBrightnessStep, kContrastStep, kSaturationStep, kHueStep, kSharpnessStep;
// No number.
extern const PixelKind kGrayscaleStep, kInvertStep, kEqualizeStep, kAutocontrastStep;
extern const PixelKind kPosterizeStep;  // bits that are kept, 0 to 8
extern const PixelKind kSolarizeStep;   // bytes of at least this threshold are inverted
extern const PixelKind kFillStep;       // x, y, width, height: inside the image; fill

void add_fill(Draws& draws, Box box, Rgb colour);

}  // namespace stoker
