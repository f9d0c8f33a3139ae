// Selects the pixels that a decoder makes of a file, and the order of the resize's passes.
#pragma once

#include <cstdint>

#include "decode/crop_spec.h"

namespace stoker {

// exact: the bytes that Pillow 13 gives for the same crop.
// exact_pillow12: the bytes of Pillow 9 to 12, which resizes horizontally first. (12.2 and 12.3 do
// not where a crop is more than 100 times as high as wide and its height is reduced; this does.)
// fast: baseline and progressive JPEGs with bilinear resize may differ from exact_pillow12 by <=
// 0.3 grey levels on average (about 0.2); everything else is as exact_pillow12.
//
// The numbers are in the fingerprints of stored runs: 0 was `exact` when that was Pillow 12, 1 was
// `fast` when progressive JPEGs were as exact_pillow12.
enum class PixelPolicy : uint8_t { exact_pillow12 = 0, exact = 2, fast = 3 };
const char* to_string(PixelPolicy policy);  // "exact-pillow12", "fast", "exact"

// Pillow rounds to bytes between the two passes of a resize, so the order shows in the pixels.
enum class PassOrder : uint8_t { horizontal_first, vertical_first };

// Returns vertical_first only where both passes change something and the height is reduced, and
// never for `nearest`, whose passes round nothing.
PassOrder pass_order(PixelPolicy policy, const CropSpec& spec);

}  // namespace stoker
