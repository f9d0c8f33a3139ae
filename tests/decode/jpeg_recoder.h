// Recodes the same picture for the tests of CropDecoder: libjpeg reads the coefficients and writes
// them again, with another restart interval, with the file's own Huffman tables, or in the scans of
// a progressive file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

// A scan of a progressive file: bits of the coefficients [first, last], in the order of the file.
struct ScanOfBits {
  std::vector<int> components;
  int first = 0;
  int last = 0;
  int high = 0;  // the lowest bit that is known; 0: none is
  int low = 0;   // the lowest bit that is known after this scan
};

struct Recoding {
  int restart_interval = 0;            // MCUs; 0 = none
  bool own_tables = false;             // false: the standard's example tables
  std::vector<ScanOfBits> scans = {};  // empty: one scan with everything; otherwise progressive
};

std::vector<uint8_t> recode_jpeg(std::span<const uint8_t> jpeg, const Recoding& recoding);

// libjpeg's coefficients: [component][block row][block][row * 8 + column], blocks padded to MCUs.
using Coefficients = std::vector<std::vector<std::vector<std::vector<int16_t>>>>;
Coefficients read_coefficients(std::span<const uint8_t> jpeg);

// libjpeg's samples before upsampling: [component][row][column], padded to MCUs.
using Samples = std::vector<std::vector<std::vector<uint8_t>>>;
Samples read_samples(std::span<const uint8_t> jpeg);

}  // namespace stoker
