// Encodes RGB pixels as a PNG file (libpng, 8 bits per channel), from which they come back as they
// are.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/image.h"

namespace stoker {

// Throws std::runtime_error with libpng's message.
std::vector<uint8_t> encode_png(ImageView image);

}  // namespace stoker
