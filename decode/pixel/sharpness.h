// Sharpness of finished pixels, in place: the bytes of PIL.ImageEnhance.Sharpness.
#pragma once

#include "decode/image.h"
#include "decode/pixel/scratch.h"

namespace stoker {

// Blends the image with ImageFilter.SMOOTH of it, a kernel of 3 x 3 that leaves the outermost
// pixels as they are. Factor 0 smooths, 1 changes nothing, more than 1 sharpens. Any finite factor.
// The scratch holds three rows.
void adjust_sharpness(MutableImageView image, double factor, PixelScratch& scratch);

}  // namespace stoker
