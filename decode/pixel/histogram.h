// Operations that look at all bytes of a channel first, in place: the bytes of PIL.ImageOps.
#pragma once

#include "decode/image.h"

namespace stoker {

// ImageOps.equalize: spreads the values of each channel so that their histogram is as even as a map
// from bytes to bytes can make it.
void equalize(MutableImageView image);

// ImageOps.autocontrast without a cutoff: stretches each channel so that its least value becomes 0
// and its most 255.
void autocontrast(MutableImageView image);

}  // namespace stoker
