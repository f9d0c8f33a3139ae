// The steps of AugMix, which blends an image with changed copies of it. They stand around the steps
// of each copy: begin, then each copy's steps and "blend", then end. Only program.h runs them. The
// steps between keep the image's size.
#pragma once

#include "pipeline/augment/draws.h"

namespace stoker {

extern const PixelKind kBlendBeginStep;  // weight of the image itself
extern const PixelKind kBlendStep;       // weight of the copy as it is now; the image comes back
extern const PixelKind kBlendEndStep;    // the sum, cut off to bytes
// In place of the end: the sum, cut off to bytes, is put over the image with this weight by
// Pillow's Image.blend.
extern const PixelKind kBlendOverStep;

}  // namespace stoker
