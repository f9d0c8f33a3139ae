// Reads the headers of a baseline JPEG without libjpeg: everything before the entropy-coded data.
//
// The parser is strict on purpose. It refuses whatever is unusual (arithmetic, 12 bit, CMYK, RGB, a
// scan without all components, wrong lengths, bad Huffman tables), and libjpeg-turbo decides about
// such a file. So nothing that libjpeg would call an error or a warning is accepted.
// progressive_headers.h reads the headers of progressive files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/image.h"

namespace stoker {

inline constexpr int kBlockSize = 64;  // coefficients

// A Huffman table as the file defines it: a view into the file.
struct HuffmanSpec {
  const uint8_t* counts = nullptr;  // (16): number of codes of 1..16 bits; nullptr = not defined
  const uint8_t* values = nullptr;  // (value_count)
  int value_count = 0;
};

struct JpegComponent {
  uint8_t id = 0;
  int across = 1;  // blocks of an MCU, horizontally
  int down = 1;    // and vertically
  int quant = 0;   // the index of its quantisation table
  int dc = 0;      // and of its Huffman tables
  int ac = 0;
  Size size;  // samples
};

// A file's components, and how its blocks become samples.
struct JpegFrame {
  Size size;
  int component_count = 0;  // 1 or 3 (then YCbCr)
  JpegComponent components[3];
  int max_across = 1;
  int max_down = 1;
  int mcus_across = 0;
  int mcus_down = 0;
  int rows_together = 1;  // MCU rows that libjpeg reads at once; damage counts in all of them
  // Row-major, in the form of 16-bit multipliers: products are taken modulo 2^16, as libjpeg's are.
  alignas(16) int16_t quant[4][kBlockSize];

  int mcu_width() const { return 8 * max_across; }
  int mcu_height() const { return 8 * max_down; }
};

// The other definitions that the segments of a file have made so far.
struct JpegTables {
  bool has_quant[4] = {};
  HuffmanSpec dc[4];
  HuffmanSpec ac[4];
  int restart_interval = 0;  // MCUs; 0 = none
};

struct BaselineJpeg : JpegFrame, JpegTables {
  size_t scan_begin = 0;  // the offset of the entropy-coded data
};

// The place (row * 8 + column) of the k-th coefficient of a file.
inline constexpr uint8_t kZigzag[kBlockSize] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// Returns the place of the next marker's code, from `at` on. Skips fill bytes and stray bytes, as
// libjpeg does. Returns bytes.size() if there is none.
size_t find_marker(std::span<const uint8_t> bytes, size_t at);

// Returns false if this decoder does not take the file. `bytes` must live as long as `jpeg` is
// used.
bool parse_baseline(std::span<const uint8_t> bytes, BaselineJpeg& jpeg);

}  // namespace stoker
