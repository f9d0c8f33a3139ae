// The operations of decode/pixel on colours by their names in tests/golden/pixel.
#pragma once

#include <string>
#include <vector>

#include "decode/image.h"
#include "decode/pixel/scratch.h"

namespace stoker {

// Arguments of the operations besides the image.
struct ColourRoom {
  std::vector<uint8_t> blurred;
  PixelScratch scratch;
};

// Runs operation `name` with these numbers on an image, in place. Returns false for an unknown
// name.
bool run_colour_operation(const std::string& name, MutableImageView image,
                          const std::vector<double>& numbers, ColourRoom& room);

}  // namespace stoker
