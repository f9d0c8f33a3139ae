#include "decode/jpeg/entropy_decoder.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/entropy_decoder.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/jpeg/entropy_block_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Returns Rest::ended or Rest::damaged.
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
  prefetch_tables(layout, count, [](const McuBlock& block) HWY_ATTR {
    prefetch(block.dc->lookup);
    prefetch(block.ac->pair);
  });
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

HWY_EXPORT(store);
HWY_EXPORT(unstuffed);
HWY_EXPORT(count_of_ff);

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
