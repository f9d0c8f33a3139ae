#include "decode/jpeg/entropy_decoder.h"

#include <array>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/entropy_decoder.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_ENTROPY_DECODER_ONCE
#define STOKER_ENTROPY_DECODER_ONCE
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

inline uint64_t load_big_endian(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  return value;
}

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

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

// A single AC symbol. length 0: there is no such code.
struct Symbol {
  int length;
  int advance;
  int value;
};

HWY_NOINLINE Symbol single_symbol(const AcTable& ac, uint64_t bits) {
  const HuffmanSymbol symbol = ac.code.find(static_cast<uint32_t>(bits >> 48), 1);
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

// Stores the AC coefficients of a block. Entries without a symbol also lead past the block's end,
// so one branch per lookup is enough. The position is kept as a pointer into kOrder, and fields are
// extracted with rotations: each saves an instruction.
HWY_INLINE bool store_ac(Bits& in, const AcTable& ac, int16_t* out) {
  const uint8_t* const order = kOrder.data();
  const uint8_t* place = order;
  uint64_t entry, before;
  // Takes at most kMaxPairBits. Returns true if that leads past the block's end.
  const auto lookup = [&](bool refills) HWY_ATTR {
    entry = ac.pair[in.bits >> (64 - kAcBits)];
    if (refills) in.refill();
    before = in.bits;
    in.drop(entry);
    out[place[entry >> 8 & 0xff]] = static_cast<int16_t>(std::rotr(entry, 16));
    place += entry >> 56;
    const uint64_t behind = behind_window<kAcBits>(before, entry);
    out[*place] = static_cast<int16_t>(std::rotr(entry, 32) + behind);
    return place >= order + kBlockEnd;
  };
  bool is_past = lookup(false) || lookup(false);
  for (;;) {
    while (!is_past) is_past = lookup(true) || lookup(false) || lookup(false);
    size_t k = static_cast<size_t>(place - order);
    if (HWY_LIKELY(ends_block(k))) return true;
    if ((entry & 0xff) != 0) {
      const size_t k1 = k - (entry >> 56) + (entry >> 8 & 0xff);
      if (k1 != kBlockEnd) return k1 < kBlockEnd && is_end(k);
      if (k == k1) return true;
      // What follows the first symbol belongs to the next block.
      const int first = single_symbol(ac, before).length;
      in.bits = before << first;
      in.count += (entry & 0xff) - static_cast<uint64_t>(first);
      return true;
    }
    k -= kNoSymbol;
    in.refill();
    const Symbol symbol = single_symbol(ac, in.bits);
    if (symbol.length == 0) return false;
    in.drop(static_cast<uint64_t>(symbol.length));
    k += static_cast<size_t>(symbol.advance);
    out[order[k]] = static_cast<int16_t>(symbol.value);
    if (k >= kBlockEnd) return is_end(k);
    place = order + k;
    is_past = false;
  }
}

// Skips as many symbols per lookup as fit; if they lead past the block's end, goes over them again
// one by one.
HWY_INLINE bool skip_ac(Bits& in, const AcTable& ac) {
  uint64_t entry, before;
  size_t k = 0;
  // Takes at most kSkipBits + 15 bits.
  const auto lookup = [&](bool refills) HWY_ATTR {
    entry = ac.skip[in.bits >> (64 - kSkipBits)];
    if (refills) in.refill();
    before = in.bits;
    in.drop(entry);
    k += entry >> 8;
    return k >= kBlockEnd;
  };
  bool is_past = lookup(false);
  for (;;) {
    while (!is_past) is_past = lookup(true) || lookup(false);
    if (HWY_LIKELY(k == kBlockEnd || (k >= kEndOfBlock && k < kEndOfBlock + kBlockEnd))) {
      return true;
    }
    in.bits = before;
    in.count += entry & 0xff;
    k -= entry >> 8;
    do {
      in.refill();
      const Symbol symbol = single_symbol(ac, in.bits);
      if (symbol.length == 0) return false;
      in.drop(static_cast<uint64_t>(symbol.length));
      k += static_cast<size_t>(symbol.advance);
    } while (k < kBlockEnd && ac.skip[in.bits >> (64 - kSkipBits)] >> 8 == kNoSymbol);
    if (k >= kBlockEnd) return is_end(k);
    is_past = false;
  }
}

template <bool kStore>
HWY_INLINE bool decode_mcus(const McuLayout& layout, int first, int count, const uint8_t* limit,
                            EntropyState& state) {
  Bits in{state.next, state.bits, static_cast<uint64_t>(state.count)};
  // `state` may hold only a few bits.
  in.refill();
  for (int m = first; m < first + count; ++m) {
    for (int b = 0; b < layout.block_count; ++b) {
      const McuBlock& block = layout.blocks[b];
      int32_t& dc = state.dc[block.component];
      if (!decode_dc(in, *block.dc, dc)) return false;
      if (kStore) {
        int16_t* out = block.coefficients +
                       coefficient_offset(static_cast<uint32_t>(m) * block.across + block.column);
        if (!store_ac(in, *block.ac, out)) return false;
        out[0] = static_cast<int16_t>(dc);
      } else {
        if (!skip_ac(in, *block.ac)) return false;
      }
    }
    if (HWY_UNLIKELY(in.next > limit)) return false;
  }
  state.next = in.next;
  state.bits = in.bits;
  state.count = static_cast<int>(in.count & 63);
  return true;
}

bool skip(const McuLayout& layout, int count, const uint8_t* limit, EntropyState& state) {
  return decode_mcus<false>(layout, 0, count, limit, state);
}

bool store(const McuLayout& layout, int first, int count, const uint8_t* limit,
           EntropyState& state) {
  return decode_mcus<true>(layout, first, count, limit, state);
}

const uint8_t* unstuffed(const uint8_t* from, const uint8_t* end, uint8_t*& to) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto ff = hn::Set(d, 0xFF);
  // Handles a vector at a time, and looks at the byte after it, to see what follows an FF.
  while (static_cast<size_t>(end - from) > lanes) {
    const auto bytes = hn::LoadU(d, from);
    hn::StoreU(bytes, d, to);
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(bytes, ff));
    if (at < 0) {
      from += lanes;
      to += lanes;
      continue;
    }
    if (from[at + 1] != 0) {
      to += at;
      return from + at;
    }
    to += at + 1;
    from += at + 2;
  }
  while (from < end) {
    if (*from == 0xFF) {
      if (end - from < 2 || from[1] != 0) return from;
      ++from;
      *to++ = 0xFF;
    } else {
      *to++ = *from;
    }
    ++from;
  }
  return end;
}

uint32_t count_of_ff(const uint8_t* bytes, size_t count) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto ff = hn::Set(d, 0xFF);
  size_t found = 0, i = 0;
  for (; i + lanes <= count; i += lanes) {
    found += hn::CountTrue(d, hn::Eq(hn::LoadU(d, bytes + i), ff));
  }
  for (; i < count; ++i) found += bytes[i] == 0xFF;
  return static_cast<uint32_t>(found);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(skip);
HWY_EXPORT(store);
HWY_EXPORT(unstuffed);
HWY_EXPORT(count_of_ff);

bool skip_mcus(const McuLayout& layout, int count, const uint8_t* limit, EntropyState& state) {
  return HWY_DYNAMIC_DISPATCH(skip)(layout, count, limit, state);
}

bool store_mcus(const McuLayout& layout, int first, int count, const uint8_t* limit,
                EntropyState& state) {
  return HWY_DYNAMIC_DISPATCH(store)(layout, first, count, limit, state);
}

const uint8_t* copy_unstuffed(const uint8_t* from, const uint8_t* end, uint8_t*& to) {
  return HWY_DYNAMIC_DISPATCH(unstuffed)(from, end, to);
}

uint32_t count_ff(const uint8_t* bytes, size_t count) {
  return HWY_DYNAMIC_DISPATCH(count_of_ff)(bytes, count);
}

}  // namespace stoker
#endif
