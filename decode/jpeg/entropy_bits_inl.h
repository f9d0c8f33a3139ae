// Shared by the loops of the entropy decoder: the bits of the data, and symbols that are too long
// for a lookup. Included once per instruction set, after highway.h.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_ENTROPY_BITS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_ENTROPY_BITS_INL_H
#undef STOKER_DECODE_ENTROPY_BITS_INL_H
#else
#define STOKER_DECODE_ENTROPY_BITS_INL_H
#endif

#include <hwy/cache_control.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "decode/jpeg/entropy_decoder.h"
#include "decode/jpeg/huffman_tables.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

HWY_INLINE uint64_t load_big_endian(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  return value;
}

// The next bits of the data. A lookup needs only the first kSkipBits of them, so a refill can come
// between a lookup and its result: the chain of lookups, which limits the speed, does not wait for
// it. A refill fills all 64 bits. A DC coefficient and two lookups of pairs (or a DC coefficient
// and a lookup of skips, or two of those) leave ten (twelve) for the next lookup.
struct Bits {
  const uint8_t* next;
  uint64_t bits;
  uint64_t count;  // only the low byte is valid, which saves an instruction per lookup

  // Afterwards at least 56 bits are counted. The bits below `count` may have been loaded before:
  // they are the same ones.
  HWY_INLINE void refill() {
    const uint64_t valid = count & 63;
    bits |= load_big_endian(next) >> valid;
    next += (63 - valid) >> 3;
    count = valid | 56;
  }
  // Drops the number of bits in the low byte of `entry` (less than 64).
  HWY_INLINE void drop(uint64_t entry) {
    bits <<= entry & 63;
    count -= entry;
  }
};

// Returns the value of `size` bits at the top of `bits`, in JPEG's coding of signed values, without
// a branch.
HWY_INLINE int32_t extend(uint64_t bits, int size) {
  const int64_t sign = static_cast<int64_t>(bits) >> 63;
  const int32_t value = static_cast<int32_t>((bits >> 1) >> (63 - size));
  return value + static_cast<int32_t>(~sign & (1 - (int64_t{1} << size)));
}

// A single AC symbol, whose code has at least `shortest` bits. length 0: there is no such code.
struct Symbol {
  int length;
  int advance;
  int value;
};

HWY_NOINLINE inline Symbol single_symbol(const AcTable& ac, uint64_t bits, int shortest) {
  const HuffmanSymbol symbol = ac.code.find(static_cast<uint32_t>(bits >> 48), shortest);
  if (symbol.length == 0) return {0, 0, 0};
  const int size = symbol.value & 15;
  return {symbol.length + size, ac_advance(symbol.value), extend(bits << symbol.length, size)};
}

HWY_INLINE bool is_end(size_t k) { return k == kBlockEnd || k >= kEndOfBlock; }

// Returns the bits of an entry's last value that come after the window of the lookup.
template <int kWindow>
HWY_INLINE uint64_t behind_window(uint64_t bits, uint64_t entry) {
  return (bits & ~uint64_t{0} >> kWindow) >> (std::rotr(entry, 48) & 63);
}

// Brings the first entries of a table into the first cache. Between two rows of MCUs, samples and
// pixels push the tables out of it; without this, the chain of lookups would wait for one line
// after the other.
template <size_t kCount, class T>
HWY_INLINE void prefetch(const T* table) {
  constexpr size_t kLine = 64 / sizeof(T);
  for (size_t i = 0; i < kCount; i += kLine) hwy::Prefetch(table + i);
}

// Calls prefetch_block(block) for blocks with tables of their own, if enough blocks are decoded.
template <class PrefetchBlock>
HWY_INLINE void prefetch_tables(const McuLayout& layout, int mcus,
                                const PrefetchBlock& prefetch_block) {
  constexpr int kFewBlocks = 16;
  if (mcus * layout.block_count < kFewBlocks) return;
  const AcTable* last = nullptr;
  for (int b = 0; b < layout.block_count; ++b) {
    if (layout.blocks[b].ac != last) prefetch_block(layout.blocks[b]);
    last = layout.blocks[b].ac;
  }
}

// Returns the difference that a DC symbol at the top of `bits` stands for. REQUIRES: its code is
// valid and 31 bits are there.
HWY_INLINE int32_t dc_difference(uint64_t bits, const DcTable& table) {
  const uint64_t entry = table.lookup[bits >> (64 - kDcBits)];
  if (HWY_LIKELY(entry != 0)) {
    return static_cast<int16_t>(std::rotr(entry, 32) + behind_window<kDcBits>(bits, entry));
  }
  const HuffmanSymbol symbol = table.code.find(static_cast<uint32_t>(bits >> 48), 1);
  return extend(bits << symbol.length, symbol.value);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
