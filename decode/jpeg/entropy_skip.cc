// Skips MCUs, one after the other.
#include <algorithm>
#include <utility>

#include "decode/jpeg/entropy_decoder.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/entropy_skip.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/jpeg/entropy_skip_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// Goes through the layout's steps before `end`, whose table has no symbols.
HWY_INLINE bool skip_steps(McuLayout& layout, const SkipStep* end, Bits& state) {
  SkipPlace at{state, layout.steps, layout.steps->table, kFirst};
  uint32_t entry;
  for (;;) {
    while (!look_up(at, true, entry) && !look_up(at, false, entry)) {
    }
    if (at.step == end) break;
    // The loop's values stay in registers, because only a copy is passed on.
    SkipPlace copy = at;
    if (!skip_unusual(layout, entry, copy)) return false;
    at = copy;
  }
  state = at.in;
  return true;
}

bool skip(McuLayout& layout, int count, const uint8_t* limit, EntropyState& state) {
  Bits in{state.next, state.bits, static_cast<uint64_t>(state.count)};
  // `state` may hold only a few bits.
  in.refill();
  prefetch_tables(layout, count, [](const McuBlock& block) HWY_ATTR {
    prefetch<1 << kSkipBits>(block.dc->skip);
    prefetch<1 << kSkipBits>(block.ac->skip);
  });
  while (count > 0) {
    const int mcus = std::min(count, kSkipChunk / layout.block_count);
    SkipStep& end = layout.steps[2 * mcus * layout.block_count];
    const uint16_t* const table = std::exchange(end.table, kNoSymbols.data());
    const bool is_good = skip_steps(layout, &end, in);
    end.table = table;
    if (!is_good || in.next > limit) return false;
    add_differences(layout, mcus, state.dc);
    count -= mcus;
  }
  state.next = in.next;
  state.bits = in.bits;
  state.count = static_cast<int>(in.count & 63);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

void plan_skips(McuLayout& layout) {
  SkipStep* step = layout.steps;
  for (int b = 0; b < kSkipChunk; ++b) {
    const McuBlock& block = layout.blocks[b % layout.block_count];
    step++->table = block.dc->skip;
    step++->table = block.ac->skip;
  }
}

HWY_EXPORT(skip);

bool skip_mcus(McuLayout& layout, int count, const uint8_t* limit, EntropyState& state) {
  return HWY_DYNAMIC_DISPATCH(skip)(layout, count, limit, state);
}

}  // namespace stoker
#endif
