// adjust_hue: Pillow's RGB -> 8-bit HSV -> RGB (Convert.c) in integers, with as many pixels to a
// vector as it has bytes.
//
// To HSV. With V the greatest byte of a pixel, R the distance from it to the least one and D that
// to the middle one, Pillow's saturation is 255 R / V and its hue 42.5 (k + D / R) or
// 42.5 (k - D / R), where k is 1, 3 or 5. Both are truncated products of floats. An exact value
// that is no integer is further from one than the floats' errors reach, so any arithmetic gives
// Pillow's byte. An exact value that is an integer S becomes S - 1 where the floats rounded it
// down. The float of S / 255 never is: its bits repeat those of S, so that the first bit cut off is
// a one. The float of the hue is for some integers, which a table has.
//
// To RGB. Hue h is sector i = floor(6 h / 255) and a fraction f = m / 85 with m = 2 h - 85 i;
// Pillow rounds v (1 - s), v (1 - s f) and v (1 - s (1 - f)) with v = V, s = S / 255. These are
// whole multiples of 1 / 255 and of 1 / 21675, odd numbers, so no exact value is in the middle
// between two bytes: the nearest is 1 / 43350 away from it, further than Pillow's rounding errors
// reach. So the exact values are rounded here.
//
// The tests compare every colour there is with Pillow's arithmetic.

// For byte_table_inl.h and planes_inl.h.
#define HWY_WANT_AVX3_DL

#include <algorithm>
#include <array>
#include <cstddef>

#include "decode/pixel/byte_runs.h"
#include "decode/pixel/byte_table.h"
#include "decode/pixel/colour.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/hue.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/pixel/byte_table_inl.h"
#include "decode/pixel/planes_inl.h"
#include "decode/pixel/shades_inl.h"

#ifndef STOKER_PIXEL_HUE_COMMON
#define STOKER_PIXEL_HUE_COMMON
namespace stoker {
namespace {

// A bit for each hue: whether Pillow's floats take an exact value that is this integer for the hue
// before it. Hue h is |2 h - 85 k| / 85 sixths of the circle away from its nearest odd multiple k.
struct LowHues {
  constexpr LowHues() {
    for (int h = 0; h < 255; ++h) {
      const int k = (2 * h / 85) | 1, away = 2 * h - 85 * k;
      const float c = static_cast<float>(away < 0 ? -away : away) / 85.0f;
      // Pillow counts the last sixth from -1 on.
      const auto middle = static_cast<float>(k == 5 && away > 0 ? -1 : k);
      const float turn = (away < 0 ? middle - c : middle + c) / 6.0f;
      const float hue = turn < 0 ? turn + 1.0f : turn;
      const bool is_low = static_cast<int>(static_cast<double>(hue) * 255.0) < h;
      if (is_low) bits[h / 8] = static_cast<uint8_t>(bits[h / 8] | 1 << h % 8);
    }
  }
  alignas(16) uint8_t bits[32] = {};
};
constexpr LowHues kLowHues;

// The bytes of 2^16 / x without its fraction; where that does not fit, the number before it.
struct Reciprocals {
  constexpr Reciprocals() {
    for (uint32_t x = 1; x < 256; ++x) {
      const uint32_t reciprocal = x == 1 ? 65535 : 65536 / x;
      upper[x] = static_cast<uint8_t>(reciprocal >> 8);
      lower[x] = static_cast<uint8_t>(reciprocal & 255);
    }
  }
  ByteTable upper{}, lower{};
};
constexpr Reciprocals kReciprocals;
alignas(16) constexpr uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using HueTag = hn::CappedTag<int32_t, 16>;
using ShadeTag = hn::CappedTag<uint16_t, 32>;

// Properties of a piece's pixels besides their colours.
struct HuePlanes : ShadePlanes {
  static constexpr size_t kPixels = PixelPlanes::kPixels;
  alignas(64) uint8_t range[kPixels];      // R, then S
  alignas(64) uint8_t away[kPixels];       // D, then 85 D / R without its fraction
  alignas(64) uint8_t rest[kPixels];       // not 0 where 85 D / R has a fraction
  alignas(64) uint8_t subtracts[kPixels];  // all bits where the hue is k less D / R, or none
  alignas(64) uint8_t start[kPixels];      // 85 (k - 1) / 2
  alignas(64) uint8_t fraction[kPixels];   // 85 f in odd sectors, else 85 (1 - f)
};

// Sets V, R, D, and on which side of which sixth of the circle the hue is.
void order_channels(const PixelPlanes& planes, size_t count, HuePlanes& hues) {
  const PixelTag d;
  const auto zero = hn::Zero(d), all = byte_value(255);
  const auto when = [](auto mask, auto yes, auto no) { return hn::IfThenElse(mask, yes, no); };
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto r = hn::Load(d, planes.red + i), g = hn::Load(d, planes.green + i);
    const auto b = hn::Load(d, planes.blue + i);
    const auto upper = hn::Max(r, g), lower = hn::Min(r, g);
    const auto most = hn::Max(upper, b), least = hn::Min(lower, b);
    const auto middle = hn::Max(lower, hn::Min(upper, b));
    hn::Store(most, d, hues.most + i);
    hn::Store(hn::Sub(most, least), d, hues.range + i);
    hn::Store(hn::Sub(most, middle), d, hues.away + i);
    // k - c: 1 - c, 3 - c, 5 - c; k + c: 1 + c, 3 + c, and 5 + c, which Pillow writes c - 1.
    const auto r_most = hn::Eq(r, most), g_most = hn::Eq(g, most);
    const auto r_least = hn::Eq(r, least), b_least = hn::Eq(b, least);
    const auto minus = when(r_most, when(b_least, all, zero),
                            when(g_most, when(b_least, zero, all), when(r_least, zero, all)));
    const auto one = byte_value(0), three = byte_value(85), five = byte_value(170);
    const auto start = when(r_most, when(b_least, one, five),
                            when(g_most, when(b_least, one, three), when(r_least, three, five)));
    hn::Store(minus, d, hues.subtracts + i);
    hn::Store(start, d, hues.start + i);
  }
}

#if HWY_TARGET == HWY_AVX3_DL

struct Quotients {
  __m512i whole, rest;
};

// Divides 16-bit numbers below 65026. A product with the reciprocal is at most one too small.
HWY_INLINE Quotients quotients(__m512i dividend, __m512i divisor, __m512i reciprocal) {
  const __m512i guess = _mm512_mulhi_epu16(dividend, reciprocal);
  const __m512i left = _mm512_sub_epi16(dividend, _mm512_mullo_epi16(guess, divisor));
  const __mmask32 is_small = _mm512_cmpge_epu16_mask(left, divisor);
  return {_mm512_mask_add_epi16(guess, is_small, guess, _mm512_set1_epi16(1)),
          _mm512_mask_sub_epi16(left, is_small, left, divisor)};
}

// Divides: sets S, and 85 D / R with its rest.
void divide(size_t count, HuePlanes& hues) {
  const VectorTable upper(kReciprocals.upper), lower(kReciprocals.lower);
  const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi8(1);
  for (size_t i = 0; i < count; i += 64) {
    const __m512i range = _mm512_load_si512(hues.range + i);
    const __m512i away = _mm512_load_si512(hues.away + i);
    const __m512i r = _mm512_max_epu8(range, one);
    const __m512i v = _mm512_max_epu8(_mm512_load_si512(hues.most + i), one);
    const __m512i r_upper = upper(r), r_lower = lower(r), v_upper = upper(v), v_lower = lower(v);
    // `half` makes 16-bit numbers of half of the bytes and upper bytes of them.
    const auto divide_half = [&](auto half) {
      const __m512i wide_range = half(range, zero);
      const __m512i times_255 = _mm512_sub_epi16(_mm512_slli_epi16(wide_range, 8), wide_range);
      const __m512i times_85 = _mm512_mullo_epi16(half(away, zero), _mm512_set1_epi16(85));
      const Quotients hue = quotients(times_85, half(r, zero), half(r_lower, r_upper));
      const Quotients saturation = quotients(times_255, half(v, zero), half(v_lower, v_upper));
      return std::array{saturation.whole, hue.whole, hue.rest};
    };
    const auto first = divide_half([](__m512i a, __m512i b) { return _mm512_unpacklo_epi8(a, b); });
    const auto second =
        divide_half([](__m512i a, __m512i b) { return _mm512_unpackhi_epi8(a, b); });
    uint8_t* const planes[] = {hues.range, hues.away, hues.rest};
    for (size_t k = 0; k < 3; ++k) {
      _mm512_store_si512(planes[k] + i, _mm512_packus_epi16(first[k], second[k]));
    }
  }
}

#else

// Divides: sets S, and 85 D / R with its rest. A quotient that is no integer is at least 1 / 255
// away from one, so floats are exact enough, and 8 fractional bits are not all zero.
void divide(size_t count, HuePlanes& hues) {
  const HueTag d;
  const hn::RebindToFloat<HueTag> df;
  const hn::Rebind<uint8_t, HueTag> d8;
  const auto load = [&](const uint8_t* plane) {
    return hn::ConvertTo(df, hn::PromoteTo(d, hn::Load(d8, plane)));
  };
  const auto store = [&](hn::Vec<HueTag> v, uint8_t* plane) {
    hn::Store(hn::DemoteTo(d8, v), d8, plane);
  };
  const auto one = hn::Set(df, 1);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto range = load(hues.range + i);
    const auto away = hn::Mul(load(hues.away + i), hn::Set(df, 85 * 256));
    const auto fixed = hn::ConvertTo(d, hn::Div(away, hn::Max(range, one)));
    store(hn::ShiftRight<8>(fixed), hues.away + i);
    store(hn::And(fixed, hn::Set(d, 255)), hues.rest + i);
    const auto most = hn::Max(load(hues.most + i), one);
    store(hn::ConvertTo(d, hn::Div(hn::Mul(range, hn::Set(df, 255)), most)), hues.range + i);
  }
}

#endif

// Returns all bits of the lanes whose hue is in kLowHues.
HWY_INLINE ByteVec is_low(ByteVec hue) {
#if HWY_TARGET == HWY_SCALAR
  const uint8_t h = hn::GetLane(hue);
  return byte_value((kLowHues.bits[h / 8] >> h % 8 & 1) != 0 ? 255 : 0);
#else
  const PixelTag d;
  const auto row = hn::ShiftRight<3>(hue);
  const auto place = hn::And(row, byte_value(15));
  const auto lower = hn::TableLookupBytes(hn::LoadDup128(d, kLowHues.bits), place);
  const auto upper = hn::TableLookupBytes(hn::LoadDup128(d, kLowHues.bits + 16), place);
  const auto bits = hn::IfThenElse(hn::Lt(row, byte_value(16)), lower, upper);
  const auto bit = hn::TableLookupBytes(hn::LoadDup128(d, kBits), hn::And(hue, byte_value(7)));
  return hn::VecFromMask(d, hn::Eq(hn::And(bits, bit), bit));
#endif
}

// Makes the hues, turns them, and sets the sectors and fractions.
void turn_hues(size_t count, uint8_t shift, HuePlanes& hues) {
  const PixelTag d;
  const auto zero = hn::Zero(d), one = byte_value(1), sixth = byte_value(85);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto away = hn::Load(d, hues.away + i);
    const auto is_whole = hn::VecFromMask(d, hn::Eq(hn::Load(d, hues.rest + i), zero));
    // 85 (1 + D / R) or 85 (1 - D / R), without its fraction.
    const auto less = hn::Sub(hn::Sub(sixth, away), hn::AndNot(is_whole, one));
    const auto is_minus = hn::Ne(hn::Load(d, hues.subtracts + i), zero);
    const auto twice = hn::IfThenElse(is_minus, less, hn::Add(sixth, away));
    const auto exact = hn::Add(hn::Load(d, hues.start + i), hn::ShiftRight<1>(twice));
    const auto is_odd = hn::VecFromMask(d, hn::Ne(hn::And(twice, one), zero));
    // The lanes of a vector of a mask are 0 or -1.
    const auto low = hn::AndNot(is_odd, hn::And(is_whole, is_low(exact)));
    const auto h = hn::Add(hn::Add(exact, low), byte_value(shift));
    // Sector i begins behind the last hue with 2 h < 85 i.
    auto sector = zero;
    for (const int last : {42, 84, 127, 169, 212, 254}) {
      sector = hn::Sub(sector, hn::VecFromMask(d, hn::Gt(h, byte_value(last))));
    }
    hn::Store(sector, d, hues.sector + i);
    // m = 2 h - 85 i is below 85, so it may be computed in bytes that wrap around. 85 is 0b1010101.
    const auto times_5 = hn::Add(sector, hn::ShiftLeft<2>(sector));
    const auto m = hn::Sub(hn::Add(h, h), hn::Add(times_5, hn::ShiftLeft<4>(times_5)));
    const auto odd_sector = hn::Ne(hn::And(sector, one), zero);
    hn::Store(hn::IfThenElse(odd_sector, m, hn::Sub(sixth, m)), d, hues.fraction + i);
  }
}

// Sets v (1 - s), and v (1 - s f) or v (1 - s (1 - f)), rounded.
void make_shades(size_t count, HuePlanes& hues) {
  const ShadeTag d;
  const hn::Rebind<uint8_t, ShadeTag> d8;
  const auto load = [&](const uint8_t* plane) { return hn::PromoteTo(d, hn::Load(d8, plane)); };
  const auto store = [&](hn::Vec<ShadeTag> value, uint8_t* plane) {
    const hn::RebindToSigned<ShadeTag> di;
    hn::Store(hn::DemoteTo(d8, hn::BitCast(di, value)), d8, plane);
  };
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto v = load(hues.most + i), s = load(hues.range + i);
    // v s / 255, rounded.
    const auto product = hn::Add(hn::Mul(v, s), hn::Set(d, 128));
    const auto loss = hn::ShiftRight<8>(hn::Add(product, hn::ShiftRight<8>(product)));
    store(hn::Sub(v, loss), hues.low + i);
    // v part / 21675, rounded. 65536 / 21675 is a little more than 3 * 129 / 128, so the guess is
    // at most 1.02 too small; what is left over is below 2^15.
    const auto part = hn::Mul(s, load(hues.fraction + i));
    const auto thrice = hn::Add(part, hn::Add(part, part));
    const auto guess = hn::MulHigh(v, hn::Add(thrice, hn::ShiftRight<7>(thrice)));
    const auto left = hn::Sub(hn::Mul(v, part), hn::Mul(guess, hn::Set(d, 21675)));
    const auto up = hn::VecFromMask(d, hn::Gt(left, hn::Set(d, 21675 / 2)));
    store(hn::Add(hn::Sub(v, guess), up), hues.between + i);
  }
}

void turn_hue_run(uint8_t* bytes, size_t byte_count, uint8_t shift) {
  HuePlanes hues;
  for_each_piece(bytes, byte_count, [&](uint8_t* pixels, size_t count, PixelPlanes& planes) {
    order_channels(planes, count, hues);
    divide(count, hues);
    turn_hues(count, shift, hues);
    make_shades(count, hues);
    choose_shades(count, hues, planes);
    join_pixels(planes.red, planes.green, planes.blue, count, pixels);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(turn_hue_run);

void adjust_hue(MutableImageView image, double factor) {
  // torchvision truncates the shift and adds it to the bytes of the hue, which wrap around.
  const auto shift = static_cast<uint8_t>(static_cast<int>(std::clamp(factor, -1.0, 1.0) * 255));
  for_each_run(image, [&](uint8_t* bytes, size_t count) {
    HWY_DYNAMIC_DISPATCH(turn_hue_run)(bytes, count, shift);
  });
}

}  // namespace stoker
#endif
