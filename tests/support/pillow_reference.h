// The plain twin of PillowResize (decode/pillow_resize.h): the same bytes, one value after another.
// It allocates memory. Sizes as in PillowResize::run(). Threads: any.
#pragma once

#include "decode/crop_spec.h"
#include "decode/image.h"
#include "decode/pixel_policy.h"

namespace stoker {

void pillow_resize_reference(ImageView crop_pixels, const CropSpec& spec, MutableImageView out,
                             PixelPolicy policy = PixelPolicy::exact);

}  // namespace stoker
