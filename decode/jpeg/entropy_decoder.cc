#include "decode/jpeg/entropy_decoder.h"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/entropy_decoder.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/jpeg/entropy_bits_inl.h"

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

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

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

// Entries without a symbol also lead past the block's end, so one branch per lookup is enough.
// Fields are extracted with rotations, which saves instructions. Takes at most kMaxPairBits.
// Returns true if that leads to the block's end or past it.
HWY_INLINE bool store_pair(BlockReader& s, bool refills) {
  const uint64_t entry = s.ac->pair[s.in.bits >> (64 - kAcBits)];
  if (refills) s.in.refill();
  const uint64_t before = s.in.bits;
  s.in.drop(entry);
  s.out[s.place[entry >> 8 & 0xff]] = static_cast<int16_t>(std::rotr(entry, 16));
  s.place += entry >> 56;
  const uint64_t behind = behind_window<kAcBits>(before, entry);
  s.out[*s.place] = static_cast<int16_t>(std::rotr(entry, 32) + behind);
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
    // What follows the first symbol belongs to the next block.
    const int first = single_symbol(ac, s.before).length;
    s.in.bits = s.before << first;
    s.in.count += (s.entry & 0xff) - static_cast<uint64_t>(first);
    return Rest::ended;
  }
  k -= kNoSymbol;
  s.in.refill();
  const Symbol symbol = single_symbol(ac, s.in.bits);
  if (symbol.length == 0) return Rest::damaged;
  s.in.drop(static_cast<uint64_t>(symbol.length));
  k += static_cast<size_t>(symbol.advance);
  s.out[kOrder[k]] = static_cast<int16_t>(symbol.value);
  s.place = kOrder.data() + k;
  if (k < kBlockEnd) return Rest::in_block;
  return is_end(k) ? Rest::ended : Rest::damaged;
}

// Begins block `b` of MCU `mcu`. Returns false if the data are damaged.
HWY_INLINE bool begin_block(const McuBlock& block, int mcu, int32_t* dc, BlockReader& s) {
  if (!decode_dc(s.in, *block.dc, dc[block.component])) return false;
  s.out = block.coefficients +
          coefficient_offset(static_cast<uint32_t>(mcu) * block.across + block.column);
  s.ac = block.ac;
  s.place = kOrder.data();
  return true;
}

HWY_INLINE Rest store_block(BlockReader& s) {
  bool is_past = store_pair(s, false) || store_pair(s, false);
  for (;;) {
    while (!is_past) is_past = store_pair(s, true) || store_pair(s, false) || store_pair(s, false);
    const Rest rest = end_block(s);
    if (rest != Rest::in_block) return rest;
    is_past = false;
  }
}

bool store(const McuLayout& layout, int first, int count, const uint8_t* limit,
           EntropyState& state) {
  BlockReader s;
  s.in = {state.next, state.bits, static_cast<uint64_t>(state.count)};
  // `state` may hold only a few bits.
  s.in.refill();
  for (int m = first; m < first + count; ++m) {
    for (int b = 0; b < layout.block_count; ++b) {
      const McuBlock& block = layout.blocks[b];
      if (!begin_block(block, m, state.dc, s) || store_block(s) == Rest::damaged) return false;
      s.out[0] = static_cast<int16_t>(state.dc[block.component]);
    }
    if (HWY_UNLIKELY(s.in.next > limit)) return false;
  }
  state.next = s.in.next;
  state.bits = s.in.bits;
  state.count = static_cast<int>(s.in.count & 63);
  return true;
}

// The place of a stream of MCUs among its blocks.
struct Stream {
  BlockReader reader;
  int block, mcu;  // of the layout
};

enum class Progress { damaged, goes_on, finished };

HWY_INLINE Progress begin_stream(const McuRun& run, int first, Stream& s) {
  s.reader.in = {run.state->next, run.state->bits, static_cast<uint64_t>(run.state->count)};
  s.reader.in.refill();
  s.block = 0;
  s.mcu = first;
  return begin_block(run.layout->blocks[0], first, run.state->dc, s.reader) ? Progress::goes_on
                                                                            : Progress::damaged;
}

// Goes on after a lookup that led to a block's end or past it.
HWY_INLINE Progress pass_end(const McuRun& run, int end, Stream& s) {
  const Rest rest = end_block(s.reader);
  if (rest == Rest::damaged) return Progress::damaged;
  // A lookup that refills comes next.
  if (rest == Rest::in_block) return Progress::goes_on;
  const McuLayout& layout = *run.layout;
  s.reader.out[0] = static_cast<int16_t>(run.state->dc[layout.blocks[s.block].component]);
  if (++s.block == layout.block_count) {
    if (HWY_UNLIKELY(s.reader.in.next > run.limit)) return Progress::damaged;
    s.block = 0;
    if (++s.mcu == end) return Progress::finished;
  }
  return begin_block(layout.blocks[s.block], s.mcu, run.state->dc, s.reader) ? Progress::goes_on
                                                                             : Progress::damaged;
}

HWY_INLINE bool finish_stream(const McuRun& run, int end, Stream& s, Progress progress) {
  while (progress == Progress::goes_on) {
    while (!store_pair(s.reader, true) && !store_pair(s.reader, false) &&
           !store_pair(s.reader, false)) {
    }
    progress = pass_end(run, end, s);
  }
  run.state->next = s.reader.in.next;
  run.state->bits = s.reader.in.bits;
  run.state->count = static_cast<int>(s.reader.in.count & 63);
  return progress == Progress::finished;
}

// The lookups of the two streams take turns, so that neither waits for its own last one alone.
bool store_two(const McuRun& run_a, const McuRun& run_b, int first, int count) {
  const int end = first + count;
  Stream a, b;
  Progress at_a = begin_stream(run_a, first, a), at_b = begin_stream(run_b, first, b);
  while (at_a == Progress::goes_on && at_b == Progress::goes_on) {
    bool a_ends = false, b_ends = false;
    do {
      (a_ends = store_pair(a.reader, true)) || (b_ends = store_pair(b.reader, true)) ||
          (a_ends = store_pair(a.reader, false)) || (b_ends = store_pair(b.reader, false)) ||
          (a_ends = store_pair(a.reader, false)) || (b_ends = store_pair(b.reader, false));
    } while (!a_ends && !b_ends);
    if (a_ends) {
      at_a = pass_end(run_a, end, a);
    } else {
      at_b = pass_end(run_b, end, b);
    }
  }
  return finish_stream(run_a, end, a, at_a) && finish_stream(run_b, end, b, at_b);
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

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(store);
HWY_EXPORT(store_two);
HWY_EXPORT(unstuffed);

bool store_mcus(const McuLayout& layout, int first, int count, const uint8_t* limit,
                EntropyState& state) {
  return HWY_DYNAMIC_DISPATCH(store)(layout, first, count, limit, state);
}

bool store_two_runs(const McuRun& a, const McuRun& b, int first, int count) {
  return HWY_DYNAMIC_DISPATCH(store_two)(a, b, first, count);
}

const uint8_t* copy_unstuffed(const uint8_t* from, const uint8_t* end, uint8_t*& to) {
  return HWY_DYNAMIC_DISPATCH(unstuffed)(from, end, to);
}

}  // namespace stoker
#endif
