#include "decode/planar_resize.h"

#include <algorithm>
#include <cstring>

#include "decode/idct_kernels.h"

// The kernels rely on 128-bit blocks, which scalable vectors lack (resize_kernels.cc says more).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/planar_resize.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/transpose_inl.h"

#ifndef STOKER_PLANAR_RESIZE_ONCE
#define STOKER_PLANAR_RESIZE_ONCE
namespace stoker {

inline constexpr int kFractionBits = 7;
inline constexpr int kChromaZero = 128 << kFractionBits;

// YCbCr -> RGB in 15 fractional bits; what is above 1 is added as the value itself.
inline constexpr int kRedOfCr = 13173;    // 1.402 - 1
inline constexpr int kBlueOfCb = 25297;   // 1.772 - 1
inline constexpr int kGreenOfCb = 11277;  // 0.344136
inline constexpr int kGreenOfCr = 23401;  // 0.714136

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

void strip(const uint8_t* columns, int first_column, const PlanarAxis& axis, int16_t* rows,
           ptrdiff_t stride) {
  resize_strip_reference(columns, first_column, axis, rows, stride);
}

void finish(const RowSum* planes, int plane_count, int width, uint8_t* out) {
  finish_row_reference(planes, plane_count, width, out);
}

#else

using D16 = hn::CappedTag<int16_t, kStripRows>;
using D32 = hn::RepartitionToWide<D16>;
using D8 = hn::Rebind<uint8_t, D16>;
using V16 = hn::Vec<D16>;

HWY_INLINE V16 weight(const int32_t* doubled) {
  return hn::BitCast(D16(), hn::Set(D32(), *doubled));
}

HWY_INLINE V16 load_samples(const uint8_t* from) {
  return hn::ShiftLeft<kFractionBits>(hn::PromoteTo(D16(), hn::LoadU(D8(), from)));
}

// The 128-bit blocks of `v` go to rows 8 apart.
template <class D, class V>
HWY_INLINE void store_blocks(D d, V v, int16_t* out, ptrdiff_t stride) {
  if constexpr (hn::MaxLanes(D()) <= 8) {
    hn::StoreU(v, d, out);
  } else {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), out, stride);
    store_blocks(half, hn::UpperHalf(half, v),
                 out + static_cast<ptrdiff_t>(hn::MaxLanes(D()) / 2) * stride, stride);
  }
}

void strip(const uint8_t* columns, int first_column, const PlanarAxis& axis, int16_t* rows,
           ptrdiff_t stride) {
  const int lanes = static_cast<int>(hn::Lanes(D16()));
  for (int i = 0; i < axis.padded_count; i += kAxisGroup) {
    const int taps = axis.group_taps[i / kAxisGroup];
    for (int part = 0; part < kStripRows; part += lanes) {
      V16 sums[kAxisGroup];
      for (int j = 0; j < kAxisGroup; ++j) {
        const uint8_t* from =
            columns + ptrdiff_t{axis.first[i + j] - first_column} * kStripRows + part;
        const int32_t* weights = axis.weights_of(i + j);
        V16 sum = hn::MulFixedPoint15(load_samples(from), weight(weights));
        for (int t = 1; t < taps; ++t) {
          from += kStripRows;
          sum = hn::SaturatedAdd(sum, hn::MulFixedPoint15(load_samples(from), weight(weights + t)));
        }
        sums[j] = sum;
      }
      transpose_8x8(D16(), sums);
      for (int r = 0; r < 8; ++r)
        store_blocks(D16(), sums[r], rows + (part + r) * stride + i, stride);
    }
  }
}

HWY_INLINE V16 weighted_sum(const RowSum& plane, int x) {
  const D16 d16;
  const int16_t* from = plane.rows + x;
  V16 sum = hn::MulFixedPoint15(hn::LoadU(d16, from), weight(plane.weights));
  for (int t = 1; t < plane.taps; ++t) {
    from += plane.stride;
    sum =
        hn::SaturatedAdd(sum, hn::MulFixedPoint15(hn::LoadU(d16, from), weight(plane.weights + t)));
  }
  return sum;
}

HWY_INLINE hn::Vec<D8> to_bytes(V16 v) {
  const V16 half = hn::Set(D16(), 1 << (kFractionBits - 1));
  return hn::DemoteTo(D8(), hn::ShiftRight<kFractionBits>(hn::SaturatedAdd(v, half)));
}

struct Rgb {
  hn::Vec<D8> r, g, b;
};

HWY_INLINE Rgb to_rgb(V16 y, V16 cb, V16 cr) {
  const D16 d16;
  const V16 zero = hn::Set(d16, kChromaZero);
  cb = hn::Sub(cb, zero);
  cr = hn::Sub(cr, zero);
  const auto part = [&](V16 chroma, int factor) HWY_ATTR {
    return hn::MulFixedPoint15(chroma, hn::Set(d16, static_cast<int16_t>(factor)));
  };
  const V16 red = hn::SaturatedAdd(cr, part(cr, kRedOfCr));
  const V16 blue = hn::SaturatedAdd(cb, part(cb, kBlueOfCb));
  const V16 green = hn::SaturatedAdd(part(cb, kGreenOfCb), part(cr, kGreenOfCr));
  return {to_bytes(hn::SaturatedAdd(y, red)), to_bytes(hn::SaturatedSub(y, green)),
          to_bytes(hn::SaturatedAdd(y, blue))};
}

HWY_INLINE Rgb pixels(const RowSum* planes, int plane_count, int x) {
  const V16 y = weighted_sum(planes[0], x);
  if (plane_count == 1) {
    const hn::Vec<D8> grey = to_bytes(y);
    return {grey, grey, grey};
  }
  return to_rgb(y, weighted_sum(planes[1], x), weighted_sum(planes[2], x));
}

void finish(const RowSum* planes, int plane_count, int width, uint8_t* out) {
  const D8 d8;
  const int lanes = static_cast<int>(hn::Lanes(d8));
  int x = 0;
  for (; x + lanes <= width; x += lanes) {
    const Rgb rgb = pixels(planes, plane_count, x);
    hn::StoreInterleaved3(rgb.r, rgb.g, rgb.b, d8, out + 3 * static_cast<size_t>(x));
  }
  if (x == width) return;
  HWY_ALIGN uint8_t tail[3 * kStripRows];
  const Rgb rgb = pixels(planes, plane_count, x);
  hn::StoreInterleaved3(rgb.r, rgb.g, rgb.b, d8, tail);
  std::memcpy(out + 3 * static_cast<size_t>(x), tail, 3 * static_cast<size_t>(width - x));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

int saturated(int value) { return std::clamp(value, -32768, 32767); }

int product(int a, int b) { return (a * b + (1 << 14)) >> 15; }

uint8_t byte_of(int value) {
  return static_cast<uint8_t>(
      std::clamp(saturated(value + (1 << (kFractionBits - 1))) >> kFractionBits, 0, 255));
}

int plain_weight(int32_t doubled) { return doubled & 0xffff; }

int plain_sum(const RowSum& plane, int x) {
  int sum = 0;
  for (int t = 0; t < plane.taps; ++t) {
    sum =
        saturated(sum + product(plane.rows[t * plane.stride + x], plain_weight(plane.weights[t])));
  }
  return sum;
}

}  // namespace

void resize_strip_reference(const uint8_t* columns, int first_column, const PlanarAxis& axis,
                            int16_t* rows, ptrdiff_t stride) {
  for (int i = 0; i < axis.padded_count; ++i) {
    const uint8_t* from = columns + ptrdiff_t{axis.first[i] - first_column} * kStripRows;
    for (int r = 0; r < kStripRows; ++r) {
      int sum = 0;
      for (int t = 0; t < axis.taps[i]; ++t) {
        sum = saturated(sum + product(from[t * kStripRows + r] << kFractionBits,
                                      plain_weight(axis.weights_of(i)[t])));
      }
      rows[r * stride + i] = static_cast<int16_t>(sum);
    }
  }
}

void finish_row_reference(const RowSum* planes, int plane_count, int width, uint8_t* out) {
  for (int x = 0; x < width; ++x, out += 3) {
    const int y = plain_sum(planes[0], x);
    if (plane_count == 1) {
      out[0] = out[1] = out[2] = byte_of(y);
      continue;
    }
    const int cb = plain_sum(planes[1], x) - kChromaZero;
    const int cr = plain_sum(planes[2], x) - kChromaZero;
    const int green = product(cb, kGreenOfCb) + product(cr, kGreenOfCr);
    out[0] = byte_of(saturated(y + saturated(cr + product(cr, kRedOfCr))));
    out[1] = byte_of(saturated(y - saturated(green)));
    out[2] = byte_of(saturated(y + saturated(cb + product(cb, kBlueOfCb))));
  }
}

HWY_EXPORT(strip);
HWY_EXPORT(finish);

void resize_strip(const uint8_t* columns, int first_column, const PlanarAxis& axis, int16_t* rows,
                  ptrdiff_t stride) {
  HWY_DYNAMIC_DISPATCH(strip)(columns, first_column, axis, rows, stride);
}

void finish_row(const RowSum* planes, int plane_count, int width, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(finish)(planes, plane_count, width, out);
}

}  // namespace stoker
#endif
