// The plain twin of the PNG reader: libpng, as decode/codec/decoder.h promises its pixels. Tests
// and fuzz targets compare the two.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stoker {

struct PngReference {
  bool is_read = false;
  std::string problem;          // why it is not
  std::vector<uint8_t> pixels;  // (height, width, 3) u8
};

// REQUIRES: the header names a picture that memory can hold.
PngReference read_png_reference(std::span<const uint8_t> file);

}  // namespace stoker
