#include "decode/jpeg/scan_table.h"

#include <algorithm>

#include "decode/jpeg/huffman_tables.h"

namespace stoker {
namespace {

constexpr int kValueBits = 15;  // of a coefficient, without its sign

uint32_t entry(int value_bits, bool is_coefficient, int advance) {
  return static_cast<uint32_t>(value_bits) | static_cast<uint32_t>(is_coefficient) << 16 |
         static_cast<uint32_t>(advance) << 24;
}

// Returns the entry of a symbol without its code.
uint32_t entry_of(uint8_t symbol, ScanSymbols kind, int low) {
  const int run = symbol >> 4, size = symbol & 15;
  if (kind == ScanSymbols::dc_first) return entry(size, true, 1);
  if (size == 0) {
    return run == 15 ? entry(0, false, run + 1) : entry(0, false, kEndOfBlock + run);
  }
  const bool is_bad = kind == ScanSymbols::ac_refine ? size > 1 : size + low > kValueBits;
  return is_bad ? entry(0, false, kBadSymbol) : entry(size, true, run + 1);
}

}  // namespace

bool build_scan_table(const HuffmanSpec& spec, ScanSymbols kind, int low, ScanTable& table) {
  if (!build_code(spec, table.code)) return false;
  for (int i = 0; i < spec.value_count; ++i) {
    const uint8_t symbol = spec.values[i];
    if (kind == ScanSymbols::dc_first && symbol > kValueBits) return false;
    table.symbols[symbol] = entry_of(symbol, kind, low);
  }
  uint32_t filled = 0;
  for_each_code(spec, kScanBits, [&](uint32_t at, uint32_t span, int code_bits, uint8_t symbol) {
    const uint32_t lookup = table.symbols[symbol] + static_cast<uint32_t>(code_bits) * kOneCodeBit;
    std::fill_n(table.lookup + at, span, lookup);
    filled = at + span;
  });
  std::fill(table.lookup + filled, table.lookup + (1 << kScanBits),
            static_cast<uint32_t>(kNoSymbol) << 24);
  return true;
}

}  // namespace stoker
