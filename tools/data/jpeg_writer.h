// Encodes RGB pixels as a JPEG file (libjpeg, 4:2:0, its default tables).
#pragma once

#include <cstdint>
#include <vector>

#include "decode/image.h"

namespace stoker {

// quality: 1..100. Throws std::runtime_error with libjpeg's message.
std::vector<uint8_t> encode_jpeg(ImageView image, int quality);

}  // namespace stoker
