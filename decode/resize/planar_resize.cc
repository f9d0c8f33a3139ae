#include "decode/resize/planar_resize.h"

#include <algorithm>

#include "decode/jpeg/idct_kernels.h"

// The kernels rely on 128-bit blocks, which scalable vectors lack (resize_kernels.cc says more).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/resize/planar_resize.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/resize/interleave_inl.h"
#include "decode/resize/transpose_inl.h"

#ifndef STOKER_PLANAR_RESIZE_ONCE
#define STOKER_PLANAR_RESIZE_ONCE
namespace stoker {

inline constexpr int kFractionBits = 7;
inline constexpr int kChromaZero = 128 << kFractionBits;
inline constexpr int kQuarter = 8192;  // in 15 fractional bits

// YCbCr to RGB in 15 fractional bits; for factors above 1, the value itself is added.
inline constexpr int kPlanarRedOfCr = 13173;    // 1.402 - 1
inline constexpr int kPlanarBlueOfCb = 25297;   // 1.772 - 1
inline constexpr int kPlanarGreenOfCb = 11277;  // 0.344136
inline constexpr int kPlanarGreenOfCr = 23401;  // 0.714136

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

void colour(const ColourPlanes& planes, int begin, int end, uint8_t* out) {
  colour_rows_reference(planes, begin, end, out);
}

void finish(const uint8_t* rows, int plane_count, int count, const PlanarAxis& down, int begin,
            IndexRange outputs, MutableImageView out) {
  resize_rows_reference(rows, plane_count, count, down, begin, outputs, out);
}

#else

using D16 = hn::CappedTag<int16_t, kStripRows>;
using D32 = hn::RepartitionToWide<D16>;
using D8 = hn::Rebind<uint8_t, D16>;
using V16 = hn::Vec<D16>;

// Repeats two lanes over the vector.
HWY_INLINE V16 pairs(int32_t two) { return hn::BitCast(D16(), hn::Set(D32(), two)); }

// Samples of a column of a strip, or of a row, and running sums of them with 16 bits. Where a
// vector has room for all of them as 16-bit numbers, there is one part in order. Otherwise the
// first part has the first half of every 128-bit block, which is cheaper than half as many samples
// in order.
using Bytes = hn::CappedTag<uint8_t, kStripRows>;
#if HWY_MAX_BYTES >= 64
using U16 = hn::Rebind<uint16_t, Bytes>;
constexpr int kParts = 1;
#else
using U16 = hn::Repartition<uint16_t, Bytes>;
constexpr int kParts = 2;
#endif
using Outputs = hn::Vec<hn::RebindToSigned<U16> >;
struct Sums {
  hn::Vec<U16> parts[kParts];
};

// Loads samples times 256; the high half of their product with a weight has kFractionBits.
HWY_INLINE Sums load_samples(const uint8_t* from) {
  const Bytes d;
  const auto bytes = hn::LoadU(d, from);
#if HWY_MAX_BYTES >= 64
  return {{hn::ShiftLeft<8>(hn::PromoteTo(U16(), bytes))}};
#else
  const auto zero = hn::Zero(d);
  return {{hn::BitCast(U16(), hn::InterleaveLower(d, zero, bytes)),
           hn::BitCast(U16(), hn::InterleaveUpper(d, zero, bytes))}};
#endif
}

HWY_INLINE Sums unweighted(const uint8_t* from) {
  Sums samples = load_samples(from);
  for (auto& part : samples.parts) part = hn::ShiftRight<8 - kFractionBits>(part);
  return samples;
}

HWY_INLINE Sums weighted(const uint8_t* from, const int32_t* doubled) {
  Sums samples = load_samples(from);
  const auto w =
      hn::BitCast(U16(), hn::Set(hn::RepartitionToWide<hn::RebindToSigned<U16> >(), *doubled));
  for (auto& part : samples.parts) part = hn::MulHigh(part, w);
  return samples;
}

HWY_INLINE void add_weighted(const uint8_t* from, const int32_t* doubled, Sums& sums) {
  const Sums products = weighted(from, doubled);
  for (int p = 0; p < kParts; ++p) sums.parts[p] = hn::Add(sums.parts[p], products.parts[p]);
}

// Stores eight outputs of eight rows in every block as rows.
HWY_INLINE void store_outputs(Outputs* outputs, int16_t* rows, ptrdiff_t stride) {
  const hn::RebindToSigned<U16> d;
  transpose_8x8(d, outputs);
  for (int r = 0; r < 8; ++r) {
    store_blocks(d, outputs[r], rows + r * stride, 8 * kParts * stride);
  }
}

void strip(const uint8_t* columns, int first_column, const PlanarAxis& axis, int16_t* rows,
           ptrdiff_t stride) {
  const int lanes = static_cast<int>(hn::Lanes(Bytes()));
  for (int i = 0; i < axis.padded_count; i += kAxisGroup) {
    const int taps = axis.group_taps[i / kAxisGroup];
    for (int part = 0; part < kStripRows; part += lanes) {
      Outputs outputs[kParts][kAxisGroup];
      for (int j = 0; j < kAxisGroup; ++j) {
        const uint8_t* from =
            columns + ptrdiff_t{axis.first[i + j] - first_column} * kStripRows + part;
        const int32_t* weights = axis.weights_of(i + j);
        Sums sums = taps > 1 ? weighted(from, weights) : unweighted(from);
        for (int t = 1; t < taps; ++t) add_weighted(from += kStripRows, weights + t, sums);
        for (int p = 0; p < kParts; ++p) {
          outputs[p][j] = hn::BitCast(hn::RebindToSigned<U16>(), sums.parts[p]);
        }
      }
      for (int p = 0; p < kParts; ++p) {
        store_outputs(outputs[p], rows + (part + 8 * p) * stride + i, stride);
      }
    }
  }
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
  const V16 red = hn::SaturatedAdd(cr, part(cr, kPlanarRedOfCr));
  const V16 blue = hn::SaturatedAdd(cb, part(cb, kPlanarBlueOfCb));
  const V16 green = hn::SaturatedAdd(part(cb, kPlanarGreenOfCb), part(cr, kPlanarGreenOfCr));
  return {to_bytes(hn::SaturatedAdd(y, red)), to_bytes(hn::SaturatedSub(y, green)),
          to_bytes(hn::SaturatedAdd(y, blue))};
}

// kBlend: at least one plane has a far row.
template <bool kBlend>
HWY_INLINE V16 pixel_values(const RowPair& pair, int x) {
  const D16 d16;
  const V16 near = hn::LoadU(d16, pair.near + x);
  if constexpr (!kBlend) return near;
  const V16 difference = hn::Sub(hn::LoadU(d16, pair.far + x), near);
  return hn::Add(near, hn::MulFixedPoint15(difference, hn::Set(d16, kQuarter)));
}

template <bool kBlend>
HWY_INLINE void colour_row(const RowPair* pairs_of, const ChromaRounding& rounding, int count,
                           uint8_t* out) {
  const D8 d8;
  const int lanes = static_cast<int>(hn::Lanes(d8));
  const V16 bias = pairs(rounding.bias), mask = pairs(rounding.mask);
  const auto chroma = [&](int c, int x) HWY_ATTR {
    return hn::And(hn::Add(pixel_values<kBlend>(pairs_of[c], x), bias), mask);
  };
  for (int x = 0; x < count; x += lanes) {
    const Rgb rgb = to_rgb(pixel_values<kBlend>(pairs_of[0], x), chroma(1, x), chroma(2, x));
    hn::StoreU(rgb.r, d8, out + x);
    hn::StoreU(rgb.g, d8, out + count + x);
    hn::StoreU(rgb.b, d8, out + 2 * ptrdiff_t{count} + x);
  }
}

void colour(const ColourPlanes& planes, int begin, int end, uint8_t* out) {
  const D8 d8;
  const int lanes = static_cast<int>(hn::Lanes(d8));
  for (int y = begin; y < end; ++y, out += ptrdiff_t{planes.plane_count} * planes.count) {
    RowPair pairs_of[3];
    bool blend = false;
    for (int c = 0; c < planes.plane_count; ++c) {
      pairs_of[c] = planes.planes[c].row_of_pixels(y);
      blend |= pairs_of[c].near != pairs_of[c].far;
    }
    if (planes.plane_count == 1) {
      for (int x = 0; x < planes.count; x += lanes) {
        hn::StoreU(to_bytes(pixel_values<true>(pairs_of[0], x)), d8, out + x);
      }
    } else if (blend) {
      colour_row<true>(pairs_of, planes.rounding[y % 2], planes.count, out);
    } else {
      colour_row<false>(pairs_of, planes.rounding[y % 2], planes.count, out);
    }
  }
}

HWY_INLINE hn::Vec<Bytes> resized(const uint8_t* from, ptrdiff_t stride, const int32_t* weights,
                                  int taps) {
  Sums sums = weighted(from, weights);
  for (int t = 1; t < taps; ++t) add_weighted(from += stride, weights + t, sums);
  const auto half = hn::Set(U16(), 1 << (kFractionBits - 1));
  for (auto& part : sums.parts) part = hn::ShiftRight<kFractionBits>(hn::Add(part, half));
  const Bytes d;
#if HWY_MAX_BYTES >= 64
  return hn::DemoteTo(d, hn::BitCast(hn::RebindToSigned<U16>(), sums.parts[0]));
#else
  // The bytes of a block are in the order 0 8 1 9 ...; the lookup restores their order.
  alignas(16) static constexpr uint8_t kOrder[16] = {0, 2, 4, 6, 8, 10, 12, 14,
                                                     1, 3, 5, 7, 9, 11, 13, 15};
  const auto mixed = hn::Or(sums.parts[0], hn::ShiftLeft<8>(sums.parts[1]));
  return hn::TableLookupBytes(hn::BitCast(d, mixed), hn::LoadDup128(d, kOrder));
#endif
}

template <bool kGrey>
HWY_INLINE void finish_row(const uint8_t* rows, int count, ptrdiff_t stride, const int32_t* weights,
                           int taps, int width, uint8_t* out) {
  const auto channel = [&](int c, int x) HWY_ATTR {
    const uint8_t* from = rows + ptrdiff_t{c} * count + x;
    return taps == 1 ? hn::LoadU(Bytes(), from) : resized(from, stride, weights, taps);
  };
  interleave_row<kGrey>(Bytes(), channel, width, out);
}

void finish(const uint8_t* rows, int plane_count, int count, const PlanarAxis& down, int begin,
            IndexRange outputs, MutableImageView out) {
  const ptrdiff_t stride = ptrdiff_t{plane_count} * count;
  for (int y = outputs.begin; y < outputs.end; ++y) {
    const uint8_t* from = rows + (down.first[y] - begin) * stride;
    const int32_t* weights = down.weights_of(y);
    uint8_t* to = out.data + y * out.stride_bytes;
    if (plane_count == 1) {
      finish_row<true>(from, count, stride, weights, down.taps[y], out.width, to);
    } else {
      finish_row<false>(from, count, stride, weights, down.taps[y], out.width, to);
    }
  }
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

int weighted_sample(int sample, int32_t doubled_weight) {
  return sample * (doubled_weight & 0xffff) >> 8;
}

int plain_value(const RowPair& pair, int x) {
  return pair.near[x] + product(pair.far[x] - pair.near[x], kQuarter);
}

void plain_colours(int y, int cb, int cr, uint8_t* out, ptrdiff_t plane_stride) {
  const int green = product(cb, kPlanarGreenOfCb) + product(cr, kPlanarGreenOfCr);
  out[0] = byte_of(saturated(y + saturated(cr + product(cr, kPlanarRedOfCr))));
  out[plane_stride] = byte_of(saturated(y - saturated(green)));
  out[2 * plane_stride] = byte_of(saturated(y + saturated(cb + product(cb, kPlanarBlueOfCb))));
}

}  // namespace

void resize_strip_reference(const uint8_t* columns, int first_column, const PlanarAxis& axis,
                            int16_t* rows, ptrdiff_t stride) {
  for (int i = 0; i < axis.padded_count; ++i) {
    const uint8_t* from = columns + ptrdiff_t{axis.first[i] - first_column} * kStripRows;
    for (int r = 0; r < kStripRows; ++r) {
      int sum = 0;
      for (int t = 0; t < axis.taps[i]; ++t) {
        sum += weighted_sample(from[t * kStripRows + r], axis.weights_of(i)[t]);
      }
      if (axis.group_taps[i / kAxisGroup] == 1) sum = from[r] << kFractionBits;
      rows[r * stride + i] = static_cast<int16_t>(sum);
    }
  }
}

void colour_rows_reference(const ColourPlanes& planes, int begin, int end, uint8_t* out) {
  for (int y = begin; y < end; ++y, out += ptrdiff_t{planes.plane_count} * planes.count) {
    const ChromaRounding& rounding = planes.rounding[y % 2];
    const auto value = [&](int c, int x) {
      return plain_value(planes.planes[c].row_of_pixels(y), x);
    };
    for (int x = 0; x < planes.count; ++x) {
      const int luma = value(0, x);
      if (planes.plane_count == 1) {
        out[x] = byte_of(luma);
        continue;
      }
      const int bias = static_cast<int16_t>(rounding.bias >> (x % 2 == 0 ? 0 : 16));
      const int mask = static_cast<int16_t>(rounding.mask);
      const auto chroma = [&](int c) { return ((value(c, x) + bias) & mask) - kChromaZero; };
      plain_colours(luma, chroma(1), chroma(2), out + x, planes.count);
    }
  }
}

void resize_rows_reference(const uint8_t* rows, int plane_count, int count, const PlanarAxis& down,
                           int begin, IndexRange outputs, MutableImageView out) {
  const ptrdiff_t stride = ptrdiff_t{plane_count} * count;
  for (int y = outputs.begin; y < outputs.end; ++y) {
    for (int i = 0; i < 3 * out.width; ++i) {
      const ptrdiff_t plane = plane_count == 1 ? 0 : i % 3 * ptrdiff_t{count};
      const uint8_t* from = rows + (down.first[y] - begin) * stride + plane + i / 3;
      int sum = 0;
      for (int t = 0; t < down.taps[y]; ++t, from += stride) {
        sum += weighted_sample(*from, down.weights_of(y)[t]);
      }
      out.data[y * out.stride_bytes + i] = byte_of(sum);
    }
  }
}

HWY_EXPORT(strip);
HWY_EXPORT(colour);
HWY_EXPORT(finish);

void resize_strip(const uint8_t* columns, int first_column, const PlanarAxis& axis, int16_t* rows,
                  ptrdiff_t stride) {
  HWY_DYNAMIC_DISPATCH(strip)(columns, first_column, axis, rows, stride);
}

void colour_rows(const ColourPlanes& planes, int begin, int end, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(colour)(planes, begin, end, out);
}

void resize_rows(const uint8_t* rows, int plane_count, int count, const PlanarAxis& down, int begin,
                 IndexRange outputs, MutableImageView out) {
  HWY_DYNAMIC_DISPATCH(finish)(rows, plane_count, count, down, begin, outputs, out);
}

}  // namespace stoker
#endif
