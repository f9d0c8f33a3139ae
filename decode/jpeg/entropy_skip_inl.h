// Shared by the loops that skip MCUs: a stream of lookups, step by step, without a branch per
// block. Included once per instruction set, after highway.h.
//
// A lookup decodes a DC symbol, or AC symbols, by the table of the current step. If it ends the
// step, its entry's sign moves three values on: to the next step, to that step's table and to the
// first position. One rarely taken branch per lookup finds what a lookup cannot do (codes that are
// too long, the ends of full blocks) and the end of the steps. The DC differences are not needed
// for that, so they are computed afterwards from the bits that each DC lookup saw.
#ifndef STOKER_DECODE_ENTROPY_SKIP_ONCE
#define STOKER_DECODE_ENTROPY_SKIP_ONCE

#include <array>

#include "decode/jpeg/entropy_decoder.h"

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

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_ENTROPY_SKIP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_ENTROPY_SKIP_INL_H
#undef STOKER_DECODE_ENTROPY_SKIP_INL_H
#else
#define STOKER_DECODE_ENTROPY_SKIP_INL_H
#endif

#include "decode/jpeg/entropy_bits_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// Where a stream is among the steps of its layout.
struct SkipPlace {
  Bits in;
  SkipStep* step;
  const uint16_t* table;  // of the step
  uint32_t k;
};

// Goes to the next step if `entry` ends this one. Compilers make a branch of the plain form.
HWY_INLINE void end_step(uint32_t entry, SkipPlace& at) {
  SkipStep* const next = at.step + 1;
#if HWY_ARCH_X86_64 && HWY_TARGET != HWY_SCALAR
  asm("testw %w[entry], %w[entry]\n\t"
      "cmovs %[next_table], %[table]\n\t"
      "cmovs %[first], %[k]\n\t"
      "cmovs %[next], %[step]"
      : [table] "+&r"(at.table), [k] "+&r"(at.k), [step] "+r"(at.step)
      : [entry] "r"(entry), [next_table] "m"(next->table), [first] "r"(kFirst), [next] "r"(next)
      : "cc");
#else
  const bool ends = (entry & kEndOfBlock << 8) != 0;
  at.table = ends ? next->table : at.table;
  at.k = ends ? kFirst : at.k;
  at.step = ends ? next : at.step;
#endif
}

// Takes at most kSkipBits + 15 bits; a refill is for two lookups. Returns true if that was not all
// that is to be done.
HWY_INLINE bool look_up(SkipPlace& at, bool refills, uint32_t& entry) {
  entry = at.table[at.in.bits >> (64 - kSkipBits)];
  if (refills) at.in.refill();
  at.step->bits = at.in.bits;
  at.in.drop(entry);
  at.k += entry >> 8;
  if (HWY_UNLIKELY((at.k & kUnusual) != 0)) return true;
  end_step(entry, at);
  return false;
}

// Goes on to the next step.
HWY_INLINE void next_step(SkipPlace& at) {
  ++at.step;
  at.k = kFirst;
}

HWY_INLINE bool skip_long_dc(const DcTable& dc, SkipPlace& at) {
  const HuffmanSymbol symbol = dc.code.find(static_cast<uint32_t>(at.in.bits >> 48), kSkipBits + 1);
  if (symbol.length == 0) return false;
  at.in.refill();
  at.in.drop(static_cast<uint64_t>(symbol.length + symbol.value));
  next_step(at);
  return true;
}

// Goes on symbol by symbol until lookups find symbols again, or to the block's end. `entry`: of the
// last lookup, before which `at` is.
HWY_INLINE bool skip_symbols(const AcTable& ac, uint32_t entry, SkipPlace& at) {
  size_t k = at.k - kFirst;
  int shortest = entry >> 8 == kNoSymbol ? kSkipBits + 1 : 1;
  do {
    at.in.refill();
    const Symbol symbol = single_symbol(ac, at.in.bits, shortest);
    if (symbol.length == 0) return false;
    at.in.drop(static_cast<uint64_t>(symbol.length));
    k += static_cast<size_t>(symbol.advance);
    if (k >= kBlockEnd) {
      if (!is_end(k)) return false;
      next_step(at);
      return true;
    }
    shortest = kSkipBits + 1;
  } while (ac.skip[at.in.bits >> (64 - kSkipBits)] >> 8 == kNoSymbol);
  at.k = static_cast<uint32_t>(k) + kFirst;
  return true;
}

// Does what the lookup of `entry`, which led to `at`, could not. Returns false if that is damage;
// the step is then the same. REQUIRES: `at` is not behind the last step.
HWY_NOINLINE inline bool skip_unusual(const McuLayout& layout, uint32_t entry, SkipPlace& at) {
  if (at.k == kFirst + kBlockEnd) {
    next_step(at);
  } else {
    at.in.bits = at.step->bits;
    at.in.count += entry & 0xff;
    at.k -= entry >> 8;
    const auto done = static_cast<size_t>(at.step - layout.steps);
    const McuBlock& block = layout.blocks[done / 2 % static_cast<size_t>(layout.block_count)];
    const bool is_dc = done % 2 == 0;
    if (!(is_dc ? skip_long_dc(*block.dc, at) : skip_symbols(*block.ac, entry, at))) return false;
  }
  at.table = at.step->table;
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

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
