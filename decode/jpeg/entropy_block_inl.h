// Stores the coefficients of a block, lookup by lookup. Included once per instruction set, after
// highway.h.
#ifndef STOKER_DECODE_ENTROPY_BLOCK_ONCE
#define STOKER_DECODE_ENTROPY_BLOCK_ONCE

#include <array>

#include "decode/jpeg/entropy_decoder.h"

namespace stoker {

// Maps a position in the block to a place in its group. Positions past the block's end (a run may
// lead there, and end-of-block does) map to place 0, which the DC coefficient overwrites.
inline constexpr auto kOrder = [] {
  std::array<uint8_t, 256> order{};
  for (size_t k = 0; k < kBlockSize; ++k) {
    order[k] = static_cast<uint8_t>(kZigzag[k] / 8 * 8 * kBlockGroup + kZigzag[k] % 8);
  }
  return order;
}();

}  // namespace stoker

#endif

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_ENTROPY_BLOCK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_ENTROPY_BLOCK_INL_H
#undef STOKER_DECODE_ENTROPY_BLOCK_INL_H
#else
#define STOKER_DECODE_ENTROPY_BLOCK_INL_H
#endif

#include "decode/jpeg/entropy_bits_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// REQUIRES: kDcBits bits. Refills, and takes at most kMaxPairBits of that.
HWY_INLINE bool decode_dc(Bits& in, const DcTable& table, int32_t& dc) {
  const uint64_t entry = table.lookup[in.bits >> (64 - kDcBits)];
  in.refill();
  if (HWY_LIKELY(entry != 0)) {
    const uint64_t behind = behind_window<kDcBits>(in.bits, entry);
    dc += static_cast<int16_t>(std::rotr(entry, 32) + behind);
    in.drop(entry);
    return true;
  }
  const HuffmanSymbol symbol = table.code.find(static_cast<uint32_t>(in.bits >> 48), 1);
  if (symbol.length == 0) return false;
  dc += extend(in.bits << symbol.length, symbol.value);
  in.drop(static_cast<uint64_t>(symbol.length + symbol.value));
  in.refill();
  return true;
}

// Returns true if a lookup that leads past the block's end has an end-of-block code in its place,
// alone or after a symbol that is not the block's last.
HWY_INLINE bool ends_block(size_t k) { return k - kEndOfBlock < kBlockEnd; }

// A block whose AC coefficients are decoded. `place` is the position in it as a pointer into
// kOrder.
struct BlockReader {
  Bits in;
  const uint8_t* place;
  int16_t* out;
  const AcTable* ac;
  uint64_t entry, before;  // the last lookup, and the bits that it saw
};

// Returns the field of an entry that begins at its byte kByte, counted from the lowest.
template <class T, size_t kByte>
HWY_INLINE T field(const uint64_t* entry) {
  constexpr bool kIsLittle = std::endian::native == std::endian::little;
  constexpr size_t kFirst = kIsLittle ? kByte : sizeof *entry - sizeof(T) - kByte;
  T value;
  std::memcpy(&value, reinterpret_cast<const uint8_t*>(entry) + kFirst, sizeof value);
  return value;
}

// Entries without a symbol also lead past the block's end, so one branch per lookup is enough.
// Fields are read from memory instead of shifted out of the entry, because processors can do more
// loads in a cycle than shifts. Takes at most kMaxPairBits. Returns true if that leads to the
// block's end or past it.
template <int kWindow>
HWY_INLINE bool store_pair(BlockReader& s, bool refills) {
  const uint64_t* const at = &s.ac->pair[s.in.bits >> (64 - kWindow)];
  const uint64_t entry = *at;
  if (refills) s.in.refill();
  const uint64_t before = s.in.bits;
  s.in.drop(entry);
  s.out[s.place[entry >> 8 & 0xff]] = field<int16_t, 2>(at);
  s.place += field<uint8_t, 7>(at);
  const uint64_t behind = (before & ~uint64_t{0} >> kWindow) >> (field<uint8_t, 6>(at) & 63);
  s.out[*s.place] = static_cast<int16_t>(field<uint16_t, 4>(at) + behind);
  s.entry = entry;
  s.before = before;
  return s.place >= kOrder.data() + kBlockEnd;
}

enum class Rest { damaged, in_block, ended };

// Goes on after a lookup that led to a block's end or past it.
HWY_INLINE Rest end_block(BlockReader& s) {
  size_t k = static_cast<size_t>(s.place - kOrder.data());
  if (HWY_LIKELY(ends_block(k))) return Rest::ended;
  const AcTable& ac = *s.ac;
  if ((s.entry & 0xff) != 0) {
    const size_t k1 = k - (s.entry >> 56) + (s.entry >> 8 & 0xff);
    if (k1 != kBlockEnd) return k1 < kBlockEnd && is_end(k) ? Rest::ended : Rest::damaged;
    if (k == k1) return Rest::ended;
    // Bits behind the first symbol belong to the next block.
    const int first = single_symbol(ac, s.before, 1).length;
    s.in.bits = s.before << first;
    s.in.count += (s.entry & 0xff) - static_cast<uint64_t>(first);
    return Rest::ended;
  }
  k -= kNoSymbol;
  s.in.refill();
  const int shortest = static_cast<int>(s.entry >> 16 & 0xff);
  const Symbol symbol = single_symbol(ac, s.in.bits, shortest);
  if (symbol.length == 0) return Rest::damaged;
  s.in.drop(static_cast<uint64_t>(symbol.length));
  k += static_cast<size_t>(symbol.advance);
  s.out[kOrder[k]] = static_cast<int16_t>(symbol.value);
  s.place = kOrder.data() + k;
  if (k < kBlockEnd) return Rest::in_block;
  return is_end(k) ? Rest::ended : Rest::damaged;
}

// Begins `block` of MCU `mcu`. Returns false if the data are damaged.
HWY_INLINE bool begin_block(const McuBlock& block, int mcu, int32_t* dc, BlockReader& s) {
  if (!decode_dc(s.in, *block.dc, dc[block.component])) return false;
  s.out = block.coefficients +
          coefficient_offset(static_cast<uint32_t>(mcu) * block.across + block.column);
  s.ac = block.ac;
  s.place = kOrder.data();
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
