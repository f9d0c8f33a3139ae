// The Huffman table of one scan of a progressive file.
//
// Such a file has a table per scan, ten or so, and each is used for a few thousand symbols. So a
// table must be built in less than a microsecond: an entry has the code's fields, and the decoder
// makes the value from the bits.
#pragma once

#include <cstdint>

#include "decode/jpeg/huffman_tables.h"

namespace stoker {

inline constexpr int kScanBits = 9;

// The symbols of a scan. They are read in different ways:
//   dc_first   the number of bits of a difference
//   ac_first   zero run << 4 | bits of the value; n << 4 ends this block and others (n < 15)
//   ac_refine  the same; a value has one bit, its sign
enum class ScanSymbols : uint8_t { dc_first, ac_first, ac_refine };

// An entry, from the lowest byte up:
//   u8 bits            of the code and the value
//   u8 code bits
//   u8 is_coefficient  0: sixteen zeros, or an end of blocks
//   u8 advance         to the coefficient; kEndOfBlock + n for the end of blocks with n more bits;
//                      kNoSymbol if the code is longer than the window; kBadSymbol
struct ScanTable {
  uint32_t lookup[1 << kScanBits];
  uint32_t symbols[256];  // by value, without the code's bits; only those that occur are set
  CanonicalCode code;
};

inline constexpr uint32_t kOneCodeBit = 0x0101;
// The advance of symbols that libjpeg may read in another way.
inline constexpr int kBadSymbol = 255;

// `low` is the lowest bit of the scan's coefficients. Returns false if libjpeg would not accept the
// Huffman code.
bool build_scan_table(const HuffmanSpec& spec, ScanSymbols kind, int low, ScanTable& table);

// Finds a code of any length. The result is never kNoSymbol.
inline uint32_t find_scan_symbol(const ScanTable& table, uint64_t bits) {
  const HuffmanSymbol symbol = table.code.find(static_cast<uint32_t>(bits >> 48), 1);
  if (symbol.length == 0) return static_cast<uint32_t>(kBadSymbol) << 24;
  return table.symbols[symbol.value] + static_cast<uint32_t>(symbol.length) * kOneCodeBit;
}

}  // namespace stoker
