// A label for each pixel of a picture, read from a PNG. A value. Labels are the numbers that
// Pillow's pixels have (and torchvision's pil_to_tensor gives):
//   palette                the number of the entry, not its colour
//   gray 1 bit, 8 bits     the value
//   gray 2 and 4 bits      the value times 85 and 17 (Pillow scales them to mode "L")
//   gray 16 bits, RGB      where labels have 4 bytes: the value; red + 256 green + 65536 blue
// Anything else is refused, a damaged file too, and a picture that EXIF turns, because the program
// that wrote it may have meant either.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"
#include "decode/scratch_vector.h"

namespace stoker {

struct LabelImage {
  Size size{};
  int label_bytes = 1;              // 1: uint8; 4: int32
  ScratchVector<uint8_t> pixels{};  // (height, width) labels
};

// Reads a label image. Returns "", or what is wrong with the file. `out` is reused.
std::string read_label_image(std::span<const uint8_t> file, int label_bytes, int64_t max_pixels,
                             LabelImage& out);

}  // namespace stoker
