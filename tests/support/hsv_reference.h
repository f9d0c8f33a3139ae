// The plain twin of decode/pixel/hsv.h, as OpenCV's own arithmetic of each pixel.
#pragma once

#include "decode/image.h"
#include "decode/pixel/hsv.h"

namespace stoker {

void hsv_reference(MutableImageView image, const HsvChange& change);

}  // namespace stoker
