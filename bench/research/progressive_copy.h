// Copies of JPEG files for the benchmarks of the decoder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

// Returns the same coefficients as a progressive file: the scans that libjpeg writes by default,
// and so Pillow, with Huffman tables of their own. Throws std::runtime_error for a file that
// libjpeg does not read.
std::vector<uint8_t> progressive_copy(std::span<const uint8_t> jpeg);

}  // namespace stoker
