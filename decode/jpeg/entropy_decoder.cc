#include "decode/jpeg/entropy_decoder.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/entropy_decoder.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/jpeg/entropy_block_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// Stores up to the block's end or past it.
template <int kWindow>
HWY_INLINE void store_pairs(BlockReader& s) {
  while (!store_pair<kWindow>(s, true) && !store_pair<kWindow>(s, false) &&
         !store_pair<kWindow>(s, false)) {
  }
}

// Returns Rest::ended or Rest::damaged.
template <int kWindow>
HWY_INLINE Rest store_block(BlockReader& s) {
  if (!store_pair<kWindow>(s, false) && !store_pair<kWindow>(s, false)) store_pairs<kWindow>(s);
  for (;;) {
    const Rest rest = end_block(s);
    if (rest != Rest::in_block) return rest;
    store_pairs<kWindow>(s);
  }
}

template <int kWindow>
HWY_NOINLINE bool store_by(const McuLayout& layout, int first, int count, const uint8_t* limit,
                           EntropyState& state) {
  BlockReader s;
  s.in = {state.next, state.bits, static_cast<uint64_t>(state.count)};
  // `state` may hold only a few bits.
  s.in.refill();
  prefetch_tables(layout, count, [](const McuBlock& block) HWY_ATTR {
    prefetch<1 << kDcBits>(block.dc->lookup);
    prefetch<1 << kWindow>(block.ac->pair);
  });
  for (int m = first; m < first + count; ++m) {
    for (int b = 0; b < layout.block_count; ++b) {
      const McuBlock& block = layout.blocks[b];
      if (!begin_block(block, m, state.dc, s) || store_block<kWindow>(s) == Rest::damaged)
        return false;
      s.out[0] = static_cast<int16_t>(state.dc[block.component]);
    }
    if (HWY_UNLIKELY(s.in.next > limit)) return false;
  }
  state.next = s.in.next;
  state.bits = s.in.bits;
  state.count = static_cast<int>(s.in.count & 63);
  return true;
}

bool store(const McuLayout& layout, int first, int count, const uint8_t* limit,
           EntropyState& state) {
  return pair_bits(layout) == kAcBits ? store_by<kAcBits>(layout, first, count, limit, state)
                                      : store_by<kMaxAcBits>(layout, first, count, limit, state);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(store);

bool store_mcus(const McuLayout& layout, int first, int count, const uint8_t* limit,
                EntropyState& state) {
  return HWY_DYNAMIC_DISPATCH(store)(layout, first, count, limit, state);
}

}  // namespace stoker
#endif
