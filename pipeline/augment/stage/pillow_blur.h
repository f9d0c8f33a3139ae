// The step of Pillow's ImageFilter.GaussianBlur, which the stage and timm's policies draw.
#pragma once

#include "pipeline/augment/draws.h"

namespace stoker {

extern const PixelKind kPillowBlurStep;  // radius, 0 or more

}  // namespace stoker
