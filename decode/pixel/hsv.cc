// adjust_hsv: OpenCV's RGB -> 8-bit HSV -> RGB (color_hsv.simd.hpp), with a table for each channel
// between.
//
// To HSV, OpenCV has integers. With V the greatest byte of a pixel and R the distance from it to
// the least one, S is R s(V) and H is N h(R), in 12 fractional bits and rounded. s(V) is the whole
// number nearest to 255 * 4096 / V, h(R) that nearest to 30 * 4096 / R, and N a difference of two
// channels, to which 2 R or 4 R is added where green or blue is the greatest. No quotient is within
// a float's error of the middle between two whole numbers, and no product has more than 24 bits: so
// floats give the same.
//
// To RGB, it has floats, and truncates. Sector i is floor(H / 30), f what H / 30 is above it, and
// the shades are v, v (1 - s), and v (1 - s f) or v (1 - s (1 - f)). Its builds for AVX2 and
// AVX-512 fuse 1 - s f into one operation, whose rounding decides where the exact shade is a whole
// number. Instruction sets without such an operation take doubles, which for all s and f of bytes
// round to the same float. The shade v, times 255, is V again for all bytes.
//
// The tests compare every colour there is with OpenCV's arithmetic.

// For byte_table_inl.h.
#define HWY_WANT_AVX3_DL

#include "decode/pixel/hsv.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "decode/pixel/byte_runs.h"
#include "decode/pixel/byte_table.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/hsv.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/pixel/byte_table_inl.h"
#include "decode/pixel/planes_inl.h"
#include "decode/pixel/shades_inl.h"

#ifndef STOKER_PIXEL_HSV_COMMON
#define STOKER_PIXEL_HSV_COMMON
namespace stoker {
namespace {

struct HsvTables {
  ByteTable hue, saturation, value;
};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FractionTag = hn::CappedTag<float, 16>;
using WholeTag = hn::RebindToSigned<FractionTag>;
using QuarterTag = hn::Rebind<uint8_t, FractionTag>;  // as many bytes as floats

// Properties of a piece's pixels besides their colours. V is in ShadePlanes::most.
struct HsvPlanes : ShadePlanes {
  static constexpr size_t kPixels = PixelPlanes::kPixels;
  alignas(64) uint8_t range[kPixels];  // R
  alignas(64) uint8_t times[kPixels];  // how often N has R: 0, 2 or 4
  alignas(64) uint8_t from[kPixels];   // N is from - less + times R
  alignas(64) uint8_t less[kPixels];
  alignas(64) uint8_t hue[kPixels];
  alignas(64) uint8_t saturation[kPixels];
};

HWY_INLINE hn::Vec<FractionTag> load_bytes(const uint8_t* plane) {
  return hn::ConvertTo(FractionTag(), hn::PromoteTo(WholeTag(), hn::Load(QuarterTag(), plane)));
}

HWY_INLINE void store_bytes(hn::Vec<WholeTag> values, uint8_t* plane) {
  hn::Store(hn::DemoteTo(QuarterTag(), values), QuarterTag(), plane);
}

void find_ranges(const PixelPlanes& planes, size_t count, HsvPlanes& hsv) {
  const PixelTag d;
  const auto two = byte_value(2), four = byte_value(4);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto r = hn::Load(d, planes.red + i), g = hn::Load(d, planes.green + i);
    const auto b = hn::Load(d, planes.blue + i);
    const auto most = hn::Max(hn::Max(r, g), b), least = hn::Min(hn::Min(r, g), b);
    const auto r_most = hn::Eq(r, most), g_most = hn::Eq(g, most);
    hn::Store(most, d, hsv.most + i);
    hn::Store(hn::Sub(most, least), d, hsv.range + i);
    hn::Store(hn::IfThenZeroElse(r_most, hn::IfThenElse(g_most, two, four)), d, hsv.times + i);
    hn::Store(hn::IfThenElse(r_most, g, hn::IfThenElse(g_most, b, r)), d, hsv.from + i);
    hn::Store(hn::IfThenElse(r_most, b, hn::IfThenElse(g_most, r, g)), d, hsv.less + i);
  }
}

// Returns value times the whole number nearest to dividend / divisor, in 12 fractional bits,
// rounded.
HWY_INLINE hn::Vec<WholeTag> divided(hn::Vec<FractionTag> value, float dividend,
                                     hn::Vec<FractionTag> divisor) {
  const FractionTag d;
  const auto some = hn::Max(divisor, hn::Set(d, 1));  // where it is 0, so is the value
  const auto factor = hn::Round(hn::Div(hn::Set(d, dividend), some));
  const auto product = hn::ConvertTo(WholeTag(), hn::Mul(value, factor));
  return hn::ShiftRight<12>(hn::Add(product, hn::Set(WholeTag(), 1 << 11)));
}

void find_hues(size_t count, HsvPlanes& hsv) {
  const FractionTag d;
  const WholeTag whole;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto range = load_bytes(hsv.range + i);
    store_bytes(divided(range, 255 << 12, load_bytes(hsv.most + i)), hsv.saturation + i);
    const auto difference = hn::Sub(load_bytes(hsv.from + i), load_bytes(hsv.less + i));
    const auto numerator = hn::MulAdd(load_bytes(hsv.times + i), range, difference);
    const auto hue = divided(numerator, 30 << 12, range);
    const auto circle = hn::And(hn::BroadcastSignBit(hue), hn::Set(whole, 180));
    store_bytes(hn::Add(hue, circle), hsv.hue + i);
  }
}

void map_planes(const HsvTables& tables, size_t count, HsvPlanes& hsv) {
  // Planes have whole vectors.
  const size_t end = (count + PixelPlanes::kLongest - 1) & ~(PixelPlanes::kLongest - 1);
  map_bytes(tables.hue, hsv.hue, end);
  map_bytes(tables.saturation, hsv.saturation, end);
  map_bytes(tables.value, hsv.most, end);
}

// Returns 1 - s f, rounded once.
HWY_INLINE hn::Vec<FractionTag> rest_of(hn::Vec<FractionTag> s, hn::Vec<FractionTag> f) {
  const FractionTag d;
#if HWY_NATIVE_FMA
  return hn::NegMulAdd(s, f, hn::Set(d, 1));
#else
  alignas(64) float rest[16], factor[16];
  hn::Store(s, d, rest);
  hn::Store(f, d, factor);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    rest[i] = static_cast<float>(1 - double{rest[i]} * double{factor[i]});
  }
  return hn::Load(d, rest);
#endif
}

void find_shades(size_t count, HsvPlanes& hsv) {
  const FractionTag d;
  const WholeTag whole;
  const auto one = hn::Set(d, 1), most = hn::Set(d, 255), unit = hn::Set(d, 1.0f / 255);
  const auto sixth = hn::Set(d, 6.0f / 180);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto h = hn::Mul(load_bytes(hsv.hue + i), sixth);
    const auto sector = hn::ConvertTo(whole, h);
    const auto f = hn::Sub(h, hn::ConvertTo(d, sector));
    const auto is_odd =
        hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::ShiftLeft<31>(sector))));
    const auto part = hn::IfThenElse(is_odd, f, hn::Sub(one, f));
    const auto s = hn::Mul(load_bytes(hsv.saturation + i), unit);
    const auto v = hn::Mul(load_bytes(hsv.most + i), unit);
    const auto store_shade = [&](hn::Vec<FractionTag> rest, uint8_t* plane) {
      store_bytes(hn::ConvertTo(whole, hn::Mul(hn::Mul(v, rest), most)), plane);
    };
    store_shade(hn::Sub(one, s), hsv.low + i);
    store_shade(rest_of(s, part), hsv.between + i);
    store_bytes(sector, hsv.sector + i);
  }
}

void map_hsv_run(uint8_t* bytes, size_t byte_count, const HsvTables& tables) {
  HsvPlanes hsv;
  for_each_piece(bytes, byte_count, [&](uint8_t* pixels, size_t count, PixelPlanes& planes) {
    find_ranges(planes, count, hsv);
    find_hues(count, hsv);
    map_planes(tables, count, hsv);
    find_shades(count, hsv);
    choose_shades(count, hsv, planes);
    join_pixels(planes.red, planes.green, planes.blue, count, pixels);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(map_hsv_run);

namespace {

// Numpy's remainder of hue + shift, which may be 180 but for rounding.
uint8_t turned(int hue, double shift) {
  const double rest = std::fmod(hue + shift, 180.0);
  const int turned = static_cast<int>(rest < 0 ? rest + 180 : rest);
  return static_cast<uint8_t>(turned == 180 ? 0 : turned);
}

HsvTables tables_of(const HsvChange& change) {
  const double shift = std::clamp(change.hue, -1.0, 1.0) * 180;
  const auto scaled = [](int byte, double factor) {
    return static_cast<uint8_t>(std::clamp(byte * factor, 0.0, 255.0));
  };
  HsvTables tables;
  for (int byte = 0; byte < 256; ++byte) {
    const auto at = static_cast<size_t>(byte);
    tables.hue[at] = turned(byte, shift);
    tables.saturation[at] = scaled(byte, change.saturation);
    tables.value[at] = scaled(byte, change.value);
  }
  return tables;
}

}  // namespace

void adjust_hsv(MutableImageView image, const HsvChange& change) {
  const HsvTables tables = tables_of(change);
  for_each_run(image, [&](uint8_t* bytes, size_t count) {
    HWY_DYNAMIC_DISPATCH(map_hsv_run)(bytes, count, tables);
  });
}

}  // namespace stoker
#endif
