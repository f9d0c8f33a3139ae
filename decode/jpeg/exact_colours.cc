#include "decode/jpeg/exact_colours.h"

#include <algorithm>
#include <cstring>

// The kernels rely on 128-bit blocks, which scalable vectors lack (decode/resize/resize_kernels.cc
// says more).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/exact_colours.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_EXACT_COLOURS_ONCE
#define STOKER_EXACT_COLOURS_ONCE
namespace stoker {

// The way in which libjpeg rounds the sums 3 * near + far, once or twice: biases of even and odd
// rows at even and odd columns, then a shift. Exact halves are rounded up and down in turn.
struct SumRounding {
  int even_column[2] = {0, 0};
  int odd_column[2] = {0, 0};
  int shift = 0;
};

inline SumRounding rounding_of(const ColourStrip& strip) {
  if (strip.halves_across && strip.halves_down) return {{8, 8}, {7, 7}, 4};
  if (strip.halves_across) return {{1, 1}, {2, 2}, 2};
  if (strip.halves_down) return {{1, 2}, {1, 2}, 2};
  return {};
}

// YCbCr to RGB in 16 fractional bits, without the integer part that 16-bit multipliers cannot hold.
inline constexpr int kRedOfCr = 26345;     // 1.402 - 1
inline constexpr int kBlueOfCb = -14942;   // 1.772 - 2
inline constexpr int kGreenOfCb = -22554;  // -0.34414
inline constexpr int kGreenOfCr = 18734;   // -0.71414 + 1

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

void colours(const ColourStrip& strip, int16_t*, uint8_t* out) {
  exact_colours_reference(strip, out);
}

#else

using D16 = hn::CappedTag<int16_t, kStripRows>;
using D32 = hn::RepartitionToWide<D16>;
using D8 = hn::Rebind<uint8_t, D16>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using Block8 = hn::Full128<uint8_t>;
using Block16 = hn::Full128<int16_t>;
using BlockVec = hn::Vec<Block16>;

// Casts a column of 32 samples to 16 bits.
HWY_INLINE void widen(const uint8_t* near, int16_t* sums) {
  const D16 d16;
  const int lanes = static_cast<int>(hn::Lanes(d16));
  for (int r = 0; r < kStripRows; r += lanes) {
    hn::Store(hn::PromoteTo(d16, hn::Load(D8(), near + r)), d16, sums + r);
  }
}

// Stores 3 * near + above and 3 * near + below in turn.
HWY_INLINE void store_sums(BlockVec near, BlockVec above, BlockVec below, int16_t* sums) {
  const Block16 d;
  const BlockVec three = hn::Add(hn::Add(near, near), near);
  const BlockVec even = hn::Add(three, above), odd = hn::Add(three, below);
  hn::Store(hn::InterleaveLower(d, even, odd), d, sums);
  hn::Store(hn::InterleaveUpper(d, even, odd), d, sums + 8);
}

// Turns a column of 16 samples into 32 sums, four times the value.
HWY_INLINE void blend_rows(const uint8_t* near_at, const uint8_t* above_at, const uint8_t* below_at,
                           int16_t* sums) {
  const Block8 d8;
  const Block16 d16;
  const auto zero = hn::Zero(d8);
  const auto near = hn::Load(d8, near_at);
  const auto above = hn::CombineShiftRightBytes<15>(d8, near, hn::Load(d8, above_at));
  const auto below = hn::CombineShiftRightBytes<1>(d8, hn::Load(d8, below_at), near);
  const auto lower = [&](auto v)
                         HWY_ATTR { return hn::BitCast(d16, hn::InterleaveLower(d8, v, zero)); };
  const auto upper = [&](auto v)
                         HWY_ATTR { return hn::BitCast(d16, hn::InterleaveUpper(d8, v, zero)); };
  store_sums(lower(near), lower(above), lower(below), sums);
  store_sums(upper(near), upper(above), upper(below), sums + 16);
}

// Brings the chroma of all columns to full height, and that of the columns before and after them.
HWY_INLINE void fill_sums(const ColourStrip& strip, const ChromaStrip& chroma, int16_t* sums) {
  const int begin = strip.has_left ? -1 : 0;
  const int end = strip.samples + (strip.has_right ? 1 : 0);
  for (ptrdiff_t s = begin; s < end; ++s) {
    const ptrdiff_t at = s * kStripRows;
    int16_t* to = sums + at + kStripRows;
    if (strip.halves_down) {
      blend_rows(chroma.near + at, chroma.above + at, chroma.below + at, to);
    } else {
      widen(chroma.near + at, to);
    }
  }
  const size_t bytes = kStripRows * sizeof(int16_t);
  int16_t* const last = sums + ptrdiff_t{strip.samples} * kStripRows;
  if (!strip.has_left) std::memcpy(sums, sums + kStripRows, bytes);
  if (!strip.has_right) std::memcpy(last + kStripRows, last, bytes);
}

// Returns round(factor * chroma) in 16 fractional bits; the first argument is 2 * chroma.
HWY_INLINE V16 product(V16 twice_chroma, int factor) {
  const D16 d16;
  const V16 high = hn::MulHigh(twice_chroma, hn::Set(d16, static_cast<int16_t>(factor)));
  return hn::ShiftRight<1>(hn::Add(high, hn::Set(d16, 1)));
}

// Returns the part of green that is not -cr.
HWY_INLINE V16 green_part(V16 cb, V16 cr) {
  const D16 d16;
  const D32 d32;
  constexpr uint32_t kWeights =
      (static_cast<uint32_t>(kGreenOfCb) & 0xffff) | static_cast<uint32_t>(kGreenOfCr) << 16;
  const V16 weights = hn::BitCast(d16, hn::Set(d32, static_cast<int32_t>(kWeights)));
  const auto half = [&](V16 pairs) HWY_ATTR {
    V32 odd = hn::Zero(d32);
    const V32 even = hn::ReorderWidenMulAccumulate(d32, pairs, weights, hn::Zero(d32), odd);
    const V32 sum = hn::RearrangeToOddPlusEven(even, odd);
    return hn::ShiftRight<16>(hn::Add(sum, hn::Set(d32, 1 << 15)));
  };
  return hn::ReorderDemote2To(d16, half(hn::InterleaveLower(d16, cb, cr)),
                              half(hn::InterleaveUpper(d16, cb, cr)));
}

// Stores a column of RGB. Cb and Cr are values minus 128.
HWY_INLINE void store_rgb(const uint8_t* luma, V16 cb, V16 cr, uint8_t* out) {
  const D8 d8;
  const V16 y = hn::PromoteTo(D16(), hn::Load(d8, luma));
  const V16 twice_cb = hn::Add(cb, cb), twice_cr = hn::Add(cr, cr);
  const V16 red = hn::Add(cr, product(twice_cr, kRedOfCr));
  const V16 green = hn::Sub(green_part(cb, cr), cr);
  const V16 blue = hn::Add(twice_cb, product(twice_cb, kBlueOfCb));
  hn::Store(hn::DemoteTo(d8, hn::Add(y, red)), d8, out);
  hn::Store(hn::DemoteTo(d8, hn::Add(y, green)), d8, out + kStripRows);
  hn::Store(hn::DemoteTo(d8, hn::Add(y, blue)), d8, out + 2 * kStripRows);
}

// Rounds the sums of a column to values minus 128.
struct ColumnRounding {
  ColumnRounding(const int* bias, int shift_by) : shift(shift_by) {
    const auto lane = [&](int b) { return static_cast<uint32_t>(b - (128 << shift)) & 0xffff; };
    two_rows = static_cast<int32_t>(lane(bias[0]) | lane(bias[1]) << 16);
  }
  HWY_INLINE V16 operator()(V16 sum) const {
    const V16 bias = hn::BitCast(D16(), hn::Set(D32(), two_rows));
    return hn::ShiftRightSame(hn::Add(sum, bias), shift);
  }
  int32_t two_rows;
  int shift;
};

// Returns a column of pixels from the sums of a column of chroma and its neighbour.
HWY_INLINE V16 blend(const int16_t* near, const int16_t* far, const ColumnRounding& rounding) {
  const D16 d16;
  const V16 n = hn::Load(d16, near);
  return rounding(hn::Add(hn::Add(hn::Add(n, n), n), hn::Load(d16, far)));
}

void colours(const ColourStrip& strip, int16_t* scratch, uint8_t* out) {
  const D16 d16;
  const int lanes = static_cast<int>(hn::Lanes(d16));
  const SumRounding rounding = rounding_of(strip);
  const ColumnRounding even(rounding.even_column, rounding.shift);
  const ColumnRounding odd(rounding.odd_column, rounding.shift);
  int16_t* const cb_sums = scratch;
  int16_t* const cr_sums = scratch + colour_scratch(strip.samples) / 2;
  fill_sums(strip, strip.chroma[0], cb_sums);
  fill_sums(strip, strip.chroma[1], cr_sums);
  const int pixels = strip.halves_across ? 2 : 1;
  for (int s = 0; s < strip.samples; ++s) {
    const uint8_t* luma = strip.luma + ptrdiff_t{s} * pixels * kStripRows;
    for (int r = 0; r < kStripRows; r += lanes) {
      const int16_t* cb = cb_sums + (s + 1) * kStripRows + r;
      const int16_t* cr = cr_sums + (s + 1) * kStripRows + r;
      if (strip.halves_across) {
        store_rgb(luma + r, blend(cb, cb - kStripRows, even), blend(cr, cr - kStripRows, even),
                  out + r);
        store_rgb(luma + kStripRows + r, blend(cb, cb + kStripRows, odd),
                  blend(cr, cr + kStripRows, odd), out + 3 * kStripRows + r);
      } else {
        store_rgb(luma + r, even(hn::Load(d16, cb)), even(hn::Load(d16, cr)), out + r);
      }
    }
    out += 3 * pixels * kStripRows;
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

// Returns 3 * near + far along the column, where chroma has half the rows.
int plain_sum(const ColourStrip& strip, const ChromaStrip& chroma, int column, int y) {
  if (column < 0 && !strip.has_left) column = 0;
  if (column >= strip.samples && !strip.has_right) column = strip.samples - 1;
  const ptrdiff_t at = ptrdiff_t{column} * kStripRows;
  if (!strip.halves_down) return chroma.near[at + y];
  const int near = y / 2, far = y % 2 != 0 ? near + 1 : near - 1;
  const int other = far < 0     ? chroma.above[at + kStripRows / 2 - 1]
                    : far >= 16 ? chroma.below[at]
                                : chroma.near[at + far];
  return 3 * chroma.near[at + near] + other;
}

int plain_chroma(const ColourStrip& strip, const ChromaStrip& chroma, int x, int y) {
  const SumRounding rounding = rounding_of(strip);
  if (!strip.halves_across) {
    return (plain_sum(strip, chroma, x, y) + rounding.even_column[y % 2]) >> rounding.shift;
  }
  const bool is_odd = x % 2 != 0;
  const int bias = is_odd ? rounding.odd_column[y % 2] : rounding.even_column[y % 2];
  return (3 * plain_sum(strip, chroma, x / 2, y) +
          plain_sum(strip, chroma, is_odd ? x / 2 + 1 : x / 2 - 1, y) + bias) >>
         rounding.shift;
}

uint8_t clipped(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

}  // namespace

// jdcolor.c's tables: 16 fractional bits, 1.402, 1.772, 0.34414, 0.71414.
void exact_colours_reference(const ColourStrip& strip, uint8_t* out) {
  constexpr int kHalf = 1 << 15;
  for (int x = 0; x < strip.pixels(); ++x, out += 3 * kStripRows) {
    for (int y = 0; y < kStripRows; ++y) {
      const int luma = strip.luma[ptrdiff_t{x} * kStripRows + y];
      const int cb = plain_chroma(strip, strip.chroma[0], x, y) - 128;
      const int cr = plain_chroma(strip, strip.chroma[1], x, y) - 128;
      out[y] = clipped(luma + ((91881 * cr + kHalf) >> 16));
      out[y + kStripRows] = clipped(luma + ((-22554 * cb - 46802 * cr + kHalf) >> 16));
      out[y + 2 * kStripRows] = clipped(luma + ((116130 * cb + kHalf) >> 16));
    }
  }
}

HWY_EXPORT(colours);

void exact_colours(const ColourStrip& strip, int16_t* scratch, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(colours)(strip, scratch, out);
}

}  // namespace stoker
#endif
