// Skips MCUs without a branch per block: where a block ends cannot be predicted.
//
// A lookup decodes a DC symbol, or AC symbols, by the table of the current step. If it ends the
// step, its entry's sign moves three values on: to the next step, to that step's table and to the
// first position. One rarely taken branch per lookup finds what a lookup cannot do (codes that are
// too long, the ends of full blocks) and the end of the steps. The DC differences are not needed
// for that, so they are computed afterwards from the bits that each DC lookup saw.
#include <algorithm>
#include <array>
#include <utility>

#include "decode/jpeg/entropy_decoder.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/entropy_skip.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/jpeg/entropy_bits_inl.h"

#ifndef STOKER_ENTROPY_SKIP_ONCE
#define STOKER_ENTROPY_SKIP_ONCE
namespace stoker {

// Positions count from 1 here. Then a bit of the position shows that a lookup led to the end of the
// block, or past it, without an end-of-block in its place, or that it found no symbol.
inline constexpr uint32_t kFirst = 1;
inline constexpr uint32_t kUnusual = 64;
static_assert(kFirst + kBlockEnd == kUnusual && kNoSymbol == kEndOfBlock + kUnusual);

// The table after the last step: no symbols.
inline constexpr auto kNoSymbols = [] {
  std::array<uint16_t, 1 << kSkipBits> entries{};
  for (uint16_t& entry : entries) entry = kNoSymbol << 8;
  return entries;
}();

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

struct SkipPlace {
  Bits in;
  SkipStep* step;
  uint32_t k;
};

// Goes to the next step if `entry` ends this one. Compilers make a branch of the plain form.
HWY_INLINE void end_step(uint32_t entry, SkipStep*& step, const uint16_t*& table, uint32_t& k) {
  SkipStep* const next = step + 1;
#if HWY_ARCH_X86_64 && HWY_TARGET != HWY_SCALAR
  asm("testw %w[entry], %w[entry]\n\t"
      "cmovs %[next_table], %[table]\n\t"
      "cmovs %[first], %[k]\n\t"
      "cmovs %[next], %[step]"
      : [table] "+&r"(table), [k] "+&r"(k), [step] "+r"(step)
      : [entry] "r"(entry), [next_table] "m"(next->table), [first] "r"(kFirst), [next] "r"(next)
      : "cc");
#else
  const bool ends = (entry & kEndOfBlock << 8) != 0;
  table = ends ? next->table : table;
  k = ends ? kFirst : k;
  step = ends ? next : step;
#endif
}

// Goes on to the next step.
HWY_INLINE void next_step(SkipPlace& at) {
  ++at.step;
  at.k = kFirst;
}

HWY_INLINE bool skip_long_dc(const DcTable& dc, SkipPlace& at) {
  const HuffmanSymbol symbol = dc.code.find(static_cast<uint32_t>(at.in.bits >> 48), 1);
  if (symbol.length == 0) return false;
  at.in.refill();
  at.in.drop(static_cast<uint64_t>(symbol.length + symbol.value));
  next_step(at);
  return true;
}

// Goes on symbol by symbol until lookups find symbols again, or to the block's end.
HWY_INLINE bool skip_symbols(const AcTable& ac, SkipPlace& at) {
  size_t k = at.k - kFirst;
  do {
    at.in.refill();
    const Symbol symbol = single_symbol(ac, at.in.bits);
    if (symbol.length == 0) return false;
    at.in.drop(static_cast<uint64_t>(symbol.length));
    k += static_cast<size_t>(symbol.advance);
    if (k >= kBlockEnd) {
      next_step(at);
      return is_end(k);
    }
  } while (ac.skip[at.in.bits >> (64 - kSkipBits)] >> 8 == kNoSymbol);
  at.k = static_cast<uint32_t>(k) + kFirst;
  return true;
}

// Does what the lookup of `entry`, which led to `at`, could not. Returns false if that is damage.
HWY_NOINLINE bool skip_unusual(const McuBlock& block, bool is_dc, uint32_t entry, SkipPlace& at) {
  if (at.k == kFirst + kBlockEnd) {
    next_step(at);
    return true;
  }
  at.in.bits = at.step->bits;
  at.in.count += entry & 0xff;
  at.k -= entry >> 8;
  return is_dc ? skip_long_dc(*block.dc, at) : skip_symbols(*block.ac, at);
}

// Goes through the layout's steps before `end`, whose table has no symbols.
HWY_INLINE bool skip_steps(McuLayout& layout, const SkipStep* end, Bits& state) {
  Bits in{state.next, state.bits, state.count};
  SkipStep* step = layout.steps;
  const uint16_t* table = step->table;
  uint32_t k = kFirst;
  uint32_t entry;
  // Takes at most kSkipBits + 15 bits. Returns true if that was not all that is to be done.
  const auto lookup = [&](bool refills) HWY_ATTR {
    entry = table[in.bits >> (64 - kSkipBits)];
    if (refills) in.refill();
    step->bits = in.bits;
    in.drop(entry);
    k += entry >> 8;
    if (HWY_UNLIKELY((k & kUnusual) != 0)) return true;
    end_step(entry, step, table, k);
    return false;
  };
  for (;;) {
    while (!lookup(true) && !lookup(false)) {
    }
    if (step == end) break;
    // The loop's variables stay in registers, because only copies are passed on.
    const auto done = static_cast<size_t>(step - layout.steps);
    const McuBlock& block = layout.blocks[done / 2 % static_cast<size_t>(layout.block_count)];
    SkipPlace at{{in.next, in.bits, in.count}, step, k};
    if (!skip_unusual(block, done % 2 == 0, entry, at)) return false;
    in.next = at.in.next;
    in.bits = at.in.bits;
    in.count = at.in.count;
    step = at.step;
    table = step->table;
    k = at.k;
  }
  state = in;
  return true;
}

// Adds the DC differences of the first `mcus` MCUs of the layout's steps.
HWY_INLINE void add_differences(const McuLayout& layout, int mcus, int32_t* dc) {
  const SkipStep* step = layout.steps;
  for (int m = 0; m < mcus; ++m) {
    for (int b = 0; b < layout.block_count; ++b, step += 2) {
      const McuBlock& block = layout.blocks[b];
      dc[block.component] += dc_difference(step->bits, *block.dc);
    }
  }
}

bool skip(McuLayout& layout, int count, const uint8_t* limit, EntropyState& state) {
  Bits in{state.next, state.bits, static_cast<uint64_t>(state.count)};
  // `state` may hold only a few bits.
  in.refill();
  prefetch_tables(layout, count, [](const McuBlock& block) HWY_ATTR {
    prefetch(block.dc->skip);
    prefetch(block.ac->skip);
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
