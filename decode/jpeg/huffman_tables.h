// Huffman tables in the form that the entropy decoder uses, and a small cache of them.
//
// One lookup of 8 bits finds a DC difference. One lookup of 10 or 11 bits finds up to two AC
// symbols: how many bits both take, their positions in the block, and their values, without the
// last bits of a long one. Where blocks are only skipped, another table has only bits and
// positions, for as many symbols as fit. Codes that do not fit are found bit by bit
// (CanonicalCode).
#pragma once

#include <cstdint>
#include <memory>

#include "decode/jpeg/headers.h"

namespace stoker {

inline constexpr int kAcBits = 10, kMaxAcBits = 11;  // 9 and 12 are slower
inline constexpr int kDcBits = 8;
inline constexpr int kSkipBits = 11;
inline constexpr int kMaxPairBits = 17;  // so that three lookups take 51 of 64 bits at most
static_assert(64 - 3 * kMaxPairBits >= kMaxAcBits && 64 - 3 * kMaxPairBits >= kDcBits);
static_assert(64 - 2 * (kSkipBits + 15) >= kSkipBits);  // 15: the most bits of a value

// How far an end-of-block code moves the position in the block: past every place that a run can
// reach, so that the two can be told apart afterwards.
inline constexpr int kEndOfBlock = 128;
inline constexpr int kBlockEnd = 63;  // the last position
// The advance of entries without a symbol: larger than any other.
inline constexpr int kNoSymbol = 192;

struct HuffmanSymbol {
  int length = 0;  // bits of the code; 0 = no such code
  uint8_t value = 0;
};

// Codes of up to 16 bits, left-aligned.
struct CanonicalCode {
  uint32_t end[17];  // codes of 1..n bits are < end[n]
  int offset[17];    // of the first value of n bits, minus its code
  uint8_t values[256];

  HuffmanSymbol find(uint32_t next_16_bits, int shortest) const {
    for (int n = shortest; n <= 16; ++n) {
      if (next_16_bits < end[n]) {
        return {n, values[(next_16_bits >> (16 - n)) + static_cast<uint32_t>(offset[n])]};
      }
    }
    return {};
  }
};

struct DcTable {
  uint64_t lookup[1 << kDcBits];  // as AcTable::pair, with one symbol and no advances; 0 = longer
  uint16_t skip[1 << kSkipBits];  // as AcTable::skip; advances by kEndOfBlock
  CanonicalCode code;
};

// An entry of AcTable::pair has one or two symbols whose codes, and the sign of the last value, fit
// into the window. From the lowest byte up:
//   u8 bits      of both symbols, with their values; at most kMaxPairBits
//   u8 advance1  to the first's position
//   i16 value1
//   i16 value2   without its bits after the window, which are added
//   u8 shift     64 - bits: moves those to the bottom
//   u8 advance2  to the second's position
// With one symbol only, the second's fields repeat the first's. With none, `bits` is 0, both
// advances are kNoSymbol, and value1 is the least length that the code can have.
struct AcTable {
  int pair_bits = kAcBits;         // of a window: kAcBits or kMaxAcBits
  uint64_t pair[1 << kMaxAcBits];  // as above; the first 2^pair_bits
  uint16_t skip[1 << kSkipBits];   // advance << 8 | bits; kNoSymbol << 8 = not even one code fits
  CanonicalCode code;
};

// Returns the window of AcTable::pair that is fastest on this machine: the tables of an image with
// 11 bits fill an L1 cache of 32 KiB, where they are slower.
int best_ac_bits();

// Returns by how much a symbol (zero run << 4 | bits of the value) moves the position.
inline int ac_advance(uint8_t symbol) {
  return (symbol & 15) != 0 || symbol == 0xF0 ? (symbol >> 4) + 1 : kEndOfBlock;
}

// Assigns the codes. Returns false if libjpeg would not accept them.
bool build_code(const HuffmanSpec& spec, CanonicalCode& code);

// Return false if libjpeg would not accept the Huffman code. build_ac_table fills the window that
// `table` says.
bool build_dc_table(const HuffmanSpec& spec, DcTable& table);
bool build_ac_table(const HuffmanSpec& spec, AcTable& table);

// Caches the last tables used, by the content of their definition: for tiny images building them
// costs more than decoding. Owner: one per CropDecoder. Threads: one at a time. A table stays valid
// until as many others are requested as there are slots (kSlots in the .cc file).
class HuffmanCache {
 public:
  explicit HuffmanCache(int ac_bits = best_ac_bits());
  ~HuffmanCache();
  HuffmanCache(const HuffmanCache&) = delete;
  HuffmanCache& operator=(const HuffmanCache&) = delete;

  const DcTable* dc(const HuffmanSpec& spec);  // nullptr: not an acceptable code
  const AcTable* ac(const HuffmanSpec& spec);
  int64_t scratch_bytes() const;
  int64_t builds() const { return builds_; }  // tables built so far

 private:
  template <class Table>
  struct Slots;
  template <class Table, class Build>
  const Table* find(Slots<Table>& slots, const HuffmanSpec& spec, const Build& build);

  const int ac_bits_;
  std::unique_ptr<Slots<DcTable>> dc_;
  std::unique_ptr<Slots<AcTable>> ac_;
  int64_t builds_ = 0;
};

// Fills table.pair, by windows of table.pair_bits, and table.skip. REQUIRES: `spec` is a code that
// build_ac_table accepts.
void fill_ac_lookups(const HuffmanSpec& spec, AcTable& table);

// Fills table.lookup. REQUIRES: no value of more than 15 bits.
void fill_dc_lookup(const HuffmanSpec& spec, DcTable& table);

// Calls fill(first entry, count, bits of the code, symbol) for every code of at most `bits` bits:
// these entries of a table of 2^bits begin with the code.
template <class Fill>
void for_each_code(const HuffmanSpec& spec, int bits, const Fill& fill) {
  uint32_t at = 0;
  const uint8_t* value = spec.values;
  for (int n = 1; n <= bits; ++n) {
    const uint32_t span = 1u << (bits - n);
    for (int i = 0; i < spec.counts[n - 1]; ++i, at += span) fill(at, span, n, *value++);
  }
}

}  // namespace stoker
