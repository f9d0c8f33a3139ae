// adjust_hue: Pillow's RGB -> 8-bit HSV -> RGB (Convert.c) without its doubles.
//
// To HSV. Pillow's hue and saturation are truncated sums of floats, and where the exact value is an
// integer their last bit decides. So the same floats are made here, and the products with 255 are
// truncated exactly, in integers. The doubles between them round to the same floats.
//
// To RGB. Hue h is sector i = floor(6 h / 255) and a fraction f = m / 85 with m = 2 h - 85 i;
// Pillow rounds v (1 - s), v (1 - s f) and v (1 - s (1 - f)) with v = V, s = S / 255. These are
// whole multiples of 1 / 255 and of 1 / 21675, odd numbers, so no exact value is in the middle
// between two bytes: the nearest is 1 / 43350 away from it, further than Pillow's rounding errors
// reach. Any arithmetic with small enough errors therefore gives Pillow's byte.
//
// The tests compare every colour there is with Pillow's arithmetic.
#include <algorithm>
#include <cstddef>

#include "decode/pixel/byte_runs.h"
#include "decode/pixel/colour.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/hue.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/pixel/planes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using HueTag = hn::CappedTag<int32_t, 16>;
using HueFloatTag = hn::RebindToFloat<HueTag>;
using HueVec = hn::Vec<HueTag>;

struct HsvVectors {
  HueVec h, s, v;
};

HWY_INLINE HueVec times_255(HueVec v) { return hn::Sub(hn::ShiftLeft<8>(v), v); }

// Returns 255 x without its fraction, 0 <= x < 1. The floats from 1/256 on are whole multiples of
// 2^-31, and those below it give 0.
HWY_INLINE HueVec times_255_truncated(hn::Vec<HueFloatTag> x) {
  const HueTag d;
  const HueFloatTag df;
  const auto fixed = hn::ConvertTo(d, hn::Mul(x, hn::Set(df, 0x1p31f)));
  const auto upper = hn::ShiftRight<8>(fixed), lower = hn::And(fixed, hn::Set(d, 0xff));
  return hn::ShiftRight<23>(hn::Add(times_255(upper), hn::ShiftRight<8>(times_255(lower))));
}

// Pillow's hue is k + c or k - c sixths, where c is the float of (most - middle) / range and k is
// a small number that depends on which channel is the most and which is the least.
HWY_INLINE HsvVectors to_hsv(HueVec r, HueVec g, HueVec b) {
  const HueTag d;
  const HueFloatTag df;
  const auto one = hn::Set(d, 1);
  const auto most = hn::Max(r, hn::Max(g, b)), least = hn::Min(r, hn::Min(g, b));
  const auto middle = hn::Sub(hn::Add(r, hn::Add(g, b)), hn::Add(most, least));
  const auto range = hn::Sub(most, least);
  const auto some_range = hn::ConvertTo(df, hn::Max(range, one));
  const auto c = hn::Div(hn::ConvertTo(df, hn::Sub(most, middle)), some_range);

  const auto r_most = hn::Eq(r, most), g_most = hn::Eq(g, most);
  const auto r_least = hn::Eq(r, least), b_least = hn::Eq(b, least);
  const auto pick = [&](auto first, float yes, float no) {
    return hn::IfThenElse(hn::RebindMask(df, first), hn::Set(df, yes), hn::Set(df, no));
  };
  const auto when = [&](auto mask, auto yes, auto no) {
    return hn::IfThenElse(hn::RebindMask(df, mask), yes, no);
  };
  // 1 - c, c - 1; 1 + c, 3 - c; 3 + c, 5 - c
  const auto k =
      when(r_most, pick(b_least, 1, -1), when(g_most, pick(b_least, 1, 3), pick(r_least, 3, 5)));
  const auto minus = hn::Neg(c);
  const auto signed_c = when(r_most, when(b_least, minus, c),
                             when(g_most, when(b_least, c, minus), when(r_least, c, minus)));
  const auto turn = hn::Div(hn::Add(k, signed_c), hn::Set(df, 6));
  const auto positive =
      hn::IfThenElse(hn::Lt(turn, hn::Zero(df)), hn::Add(turn, hn::Set(df, 1)), turn);
  const auto h = hn::IfThenElseZero(hn::Gt(range, hn::Zero(d)), times_255_truncated(positive));

  // The saturation of 1 has no place in 31 fractional bits.
  const auto full = hn::Eq(range, hn::Max(most, one));
  const auto some_most = hn::ConvertTo(df, hn::Max(most, one));
  const auto ratio = hn::Div(hn::ConvertTo(df, range), some_most);
  const auto below = hn::IfThenZeroElse(hn::RebindMask(df, full), ratio);
  return {h, hn::IfThenElse(full, hn::Set(d, 255), times_255_truncated(below)), most};
}

struct RgbVectors {
  HueVec r, g, b;
};

HWY_INLINE RgbVectors from_hsv(HsvVectors hsv) {
  const HueTag d;
  const HueFloatTag df;
  const HueVec h = hsv.h, s = hsv.s, v = hsv.v;
  const auto set = [&](int32_t value) { return hn::Set(d, value); };
  // The sector is 2 h / 85, 0..6; 6 is the same as 0, because the fraction is 0 there.
  const auto twice = hn::Add(h, h);
  const auto sector = hn::ShiftRight<16>(hn::Mul(twice, set(772)));
  const auto m = hn::Sub(twice, hn::Mul(sector, set(85)));
  const auto odd = hn::Eq(hn::And(sector, set(1)), set(1));
  const auto fraction = hn::IfThenElse(odd, m, hn::Sub(set(85), m));
  // v s / 255, rounded.
  const auto product = hn::Add(hn::Mul(v, s), set(128));
  const auto low = hn::Sub(v, hn::ShiftRight<8>(hn::Add(product, hn::ShiftRight<8>(product))));
  // v s fraction / (255 * 85), rounded.
  const auto loss = hn::ConvertTo(df, hn::Mul(v, hn::Mul(s, fraction)));
  const auto share = hn::Add(hn::Mul(loss, hn::Set(df, 1.0f / 21675)), hn::Set(df, 0.5f));
  const auto between = hn::Sub(v, hn::ConvertTo(d, share));

  const auto is = [&](int32_t i) { return hn::Eq(sector, set(i)); };
  const auto zero = hn::Or(is(0), is(6));
  const auto one = is(1), two = is(2), three = is(3), four = is(4), five = is(5);
  const auto choose = [&](auto full, auto partly) {
    return hn::IfThenElse(full, v, hn::IfThenElse(partly, between, low));
  };
  return {choose(hn::Or(zero, five), hn::Or(one, four)),
          choose(hn::Or(one, two), hn::Or(zero, three)),
          choose(hn::Or(three, four), hn::Or(two, five))};
}

void turn_hue_run(uint8_t* bytes, size_t byte_count, uint8_t shift) {
  const HueTag d;
  const hn::Rebind<uint8_t, HueTag> d8;
  const auto load = [&](const uint8_t* plane) { return hn::PromoteTo(d, hn::Load(d8, plane)); };
  const auto store = [&](HueVec v, uint8_t* plane) { hn::Store(hn::DemoteTo(d8, v), d8, plane); };
  for_each_piece(bytes, byte_count, [&](uint8_t* pixels, size_t count, PixelPlanes& planes) {
    for (size_t i = 0; i < count; i += hn::Lanes(d)) {
      uint8_t *r = planes.red + i, *g = planes.green + i, *b = planes.blue + i;
      HsvVectors hsv = to_hsv(load(r), load(g), load(b));
      hsv.h = hn::And(hn::Add(hsv.h, hn::Set(d, shift)), hn::Set(d, 0xff));
      const RgbVectors rgb = from_hsv(hsv);
      store(rgb.r, r);
      store(rgb.g, g);
      store(rgb.b, b);
    }
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
