// Recodes the same picture for the tests of CropDecoder: libjpeg reads the coefficients and writes
// them again, with another restart interval or with the file's own Huffman tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

struct Recoding {
  int restart_interval = 0;  // MCUs; 0 = none
  bool own_tables = false;   // false: the standard's example tables
};

std::vector<uint8_t> recode_jpeg(std::span<const uint8_t> jpeg, const Recoding& recoding);

// libjpeg's coefficients: [component][block row][block][row * 8 + column], blocks padded to MCUs.
using Coefficients = std::vector<std::vector<std::vector<std::vector<int16_t>>>>;
Coefficients read_coefficients(std::span<const uint8_t> jpeg);

// libjpeg's samples before upsampling: [component][row][column], padded to MCUs.
using Samples = std::vector<std::vector<std::vector<uint8_t>>>;
Samples read_samples(std::span<const uint8_t> jpeg);

}  // namespace stoker
