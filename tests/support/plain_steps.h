// The plain twin of pipeline/augment/program.h: every drawn step by itself, on whole images, in the
// order in which it was drawn. Crops, resizes, flips, padding and tables are plain loops here;
// other steps run their own function, which has a twin elsewhere.
#pragma once

#include <vector>

#include "decode/pixel_policy.h"
#include "pipeline/augment/draws.h"

namespace stoker {

// `rgb`: the whole source image, (height, width, 3). Returns the finished row.

std::vector<uint8_t> plain_steps(const Draws& draws, const std::vector<uint8_t>& rgb,
                                 PixelPolicy policy);

}  // namespace stoker
