// dot_product_inl.h has an instruction of the set that Highway calls AVX3_DL and leaves out unless
// it is asked for.
#define HWY_WANT_AVX3_DL

#include "decode/resize/exact_resize.h"

#include <algorithm>

#include "decode/jpeg/idct_kernels.h"

// The kernels rely on 128-bit blocks, which scalable vectors lack (resize_kernels.cc says more).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/resize/exact_resize.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/resize/interleave_inl.h"
#include "decode/resize/transpose_inl.h"
#include "decode/resize/weighted_sum_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

void across(const uint8_t* columns, int planes, int first_column, const ResampleTable& table,
            uint8_t* rows, ptrdiff_t stride) {
  exact_across_reference(columns, planes, first_column, table, rows, stride);
}

void down(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
          const ResampleTable& table, IndexRange outputs, MutableImageView out) {
  exact_down_reference(rows, planes, stride, first_row, table, outputs, out);
}

void down_to_strip(const uint8_t* rows, int planes, ptrdiff_t stride, int width, int first_row,
                   const ResampleTable& table, IndexRange outputs, uint8_t* strip) {
  exact_down_to_strip_reference(rows, planes, stride, width, first_row, table, outputs, strip);
}

#else

using Bytes = hn::CappedTag<uint8_t, kStripRows>;
using Pairs = hn::Repartition<int16_t, Bytes>;
using Vector = hn::Vec<Bytes>;

// Bilinear has no negative weights, and the roundings of its weights cancel out: sums need no
// clipping. Box has no negative weights either, but they are all equal, and so are their roundings:
// over ten thousands of pixels they add up to more than 255.
enum class Resampling { copy, unclipped, clipped };

Resampling resampling_of(const ResampleTable& table) {
  if (table.identity || table.key.filter == Filter::nearest) return Resampling::copy;
  return table.key.filter == Filter::bilinear ? Resampling::unclipped : Resampling::clipped;
}

constexpr int kGroup = kStripOutputs;  // outputs: as many bytes as a 128-bit block has

// Stores sixteen outputs of a vector of rows to the rows, sixteen bytes each. (Or with columns
// instead of rows.)
HWY_INLINE void store_group(const Vector* outputs, uint8_t* rows, ptrdiff_t row_stride) {
  const Bytes d8;
  const Pairs d16;
  hn::Vec<Pairs> lower[8], upper[8];
  for (int i = 0; i < 8; ++i) {
    lower[i] = hn::BitCast(d16, hn::InterleaveLower(d8, outputs[2 * i], outputs[2 * i + 1]));
    upper[i] = hn::BitCast(d16, hn::InterleaveUpper(d8, outputs[2 * i], outputs[2 * i + 1]));
  }
  transpose_8x8(d16, lower);
  transpose_8x8(d16, upper);
  for (int r = 0; r < 8; ++r) {
    store_blocks(d8, hn::BitCast(d8, lower[r]), rows + r * row_stride, 16 * row_stride);
    store_blocks(d8, hn::BitCast(d8, upper[r]), rows + (r + 8) * row_stride, 16 * row_stride);
  }
}

template <Resampling kResampling>
HWY_INLINE void resize_columns(const uint8_t* columns, int planes, int first_column,
                               const ResampleTable& table, uint8_t* rows, ptrdiff_t stride) {
  const Bytes d8;
  const int lanes = static_cast<int>(hn::Lanes(d8));
  const ptrdiff_t column = ptrdiff_t{planes} * kStripRows;
  const ptrdiff_t row = planes * stride;
  for (int i = 0; i < table.key.count; i += kGroup) {
    for (int c = 0; c < planes; ++c) {
      for (int part = 0; part < kStripRows; part += lanes) {
        Vector outputs[kGroup];
        for (int j = 0; j < kGroup; ++j) {
          const int o = std::min(i + j, table.key.count - 1);
          const uint8_t* from =
              columns + (table.first[o] - first_column) * column + c * kStripRows + part;
          if constexpr (kResampling == Resampling::copy) {
            outputs[j] = hn::Load(d8, from);
          } else {
            const auto load = [&](int t) HWY_ATTR { return hn::Load(d8, from + t * column); };
            outputs[j] = weighted_sum<kResampling == Resampling::clipped>(d8, load, table.taps[o],
                                                                          table.pairs_of(o));
          }
        }
        store_group(outputs, rows + part * row + c * stride + i, row);
      }
    }
  }
}

void across(const uint8_t* columns, int planes, int first_column, const ResampleTable& table,
            uint8_t* rows, ptrdiff_t stride) {
  switch (resampling_of(table)) {
    case Resampling::copy:
      return resize_columns<Resampling::copy>(columns, planes, first_column, table, rows, stride);
    case Resampling::unclipped:
      return resize_columns<Resampling::unclipped>(columns, planes, first_column, table, rows,
                                                   stride);
    case Resampling::clipped:
      return resize_columns<Resampling::clipped>(columns, planes, first_column, table, rows,
                                                 stride);
  }
}

template <Resampling kResampling, bool kGrey>
HWY_INLINE void resize_row(const uint8_t* rows, int planes, ptrdiff_t stride,
                           const ResampleTable& table, int y, int width, uint8_t* out) {
  const Bytes d8;
  const ptrdiff_t row = planes * stride;
  const auto channel = [&](int c, int x) HWY_ATTR {
    const uint8_t* from = rows + c * stride + x;
    const auto load = [&](int t) HWY_ATTR { return hn::LoadU(d8, from + t * row); };
    if constexpr (kResampling == Resampling::copy) return load(0);
    return weighted_sum<kResampling == Resampling::clipped>(d8, load, table.taps[y],
                                                            table.pairs_of(y));
  };
  interleave_row<kGrey>(d8, channel, width, out);
}

template <Resampling kResampling>
HWY_INLINE void resize_rows(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
                            const ResampleTable& table, IndexRange outputs, MutableImageView out) {
  for (int y = outputs.begin; y < outputs.end; ++y) {
    const uint8_t* from = rows + (table.first[y] - first_row) * planes * stride;
    uint8_t* to = out.data + y * out.stride_bytes;
    if (planes == 1) {
      resize_row<kResampling, true>(from, planes, stride, table, y, out.width, to);
    } else {
      resize_row<kResampling, false>(from, planes, stride, table, y, out.width, to);
    }
  }
}

void down(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
          const ResampleTable& table, IndexRange outputs, MutableImageView out) {
  switch (resampling_of(table)) {
    case Resampling::copy:
      return resize_rows<Resampling::copy>(rows, planes, stride, first_row, table, outputs, out);
    case Resampling::unclipped:
      return resize_rows<Resampling::unclipped>(rows, planes, stride, first_row, table, outputs,
                                                out);
    case Resampling::clipped:
      return resize_rows<Resampling::clipped>(rows, planes, stride, first_row, table, outputs, out);
  }
}

template <bool kClips>
HWY_INLINE void resize_rows_to_strip(const uint8_t* rows, int planes, ptrdiff_t stride, int width,
                                     int first_row, const ResampleTable& table, IndexRange outputs,
                                     uint8_t* strip) {
  const Bytes d8;
  const int lanes = static_cast<int>(hn::Lanes(d8));
  const ptrdiff_t column = ptrdiff_t{planes} * kStripRows;
  const ptrdiff_t row = planes * stride;
  for (int c = 0; c < planes; ++c) {
    for (int x = 0; x < width; x += lanes) {
      Vector results[kGroup];
      for (int j = 0; j < kGroup; ++j) {
        const int y = std::min(outputs.begin + j, outputs.end - 1);
        const uint8_t* from = rows + (table.first[y] - first_row) * row + c * stride + x;
        const auto load = [&](int t) HWY_ATTR { return hn::LoadU(d8, from + t * row); };
        results[j] = weighted_sum<kClips>(d8, load, table.taps[y], table.pairs_of(y));
      }
      store_group(results, strip + x * column + c * kStripRows, column);
    }
  }
}

void down_to_strip(const uint8_t* rows, int planes, ptrdiff_t stride, int width, int first_row,
                   const ResampleTable& table, IndexRange outputs, uint8_t* strip) {
  if (table.key.filter == Filter::bilinear) {
    resize_rows_to_strip<false>(rows, planes, stride, width, first_row, table, outputs, strip);
  } else {
    resize_rows_to_strip<true>(rows, planes, stride, width, first_row, table, outputs, strip);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

// Returns Pillow's sum: output `i` of the table over samples `step` apart.
uint8_t plain_output(const uint8_t* from, ptrdiff_t step, const ResampleTable& table, int i) {
  if (table.identity) return *from;
  const int32_t* weights = table.weights.data() + ptrdiff_t{i} * table.max_taps;
  int32_t sum = 1 << (kWeightBits - 1);
  for (int t = 0; t < table.taps[i]; ++t) sum += from[t * step] * weights[t];
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

}  // namespace

void exact_across_reference(const uint8_t* columns, int planes, int first_column,
                            const ResampleTable& table, uint8_t* rows, ptrdiff_t stride) {
  const ptrdiff_t column = ptrdiff_t{planes} * kStripRows;
  for (int i = 0; i < table.key.count; ++i) {
    const uint8_t* from = columns + (table.first[i] - first_column) * column;
    for (int c = 0; c < planes; ++c) {
      for (int r = 0; r < kStripRows; ++r) {
        rows[(ptrdiff_t{r} * planes + c) * stride + i] =
            plain_output(from + c * kStripRows + r, column, table, i);
      }
    }
  }
}

void exact_down_reference(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
                          const ResampleTable& table, IndexRange outputs, MutableImageView out) {
  const ptrdiff_t row = planes * stride;
  for (int y = outputs.begin; y < outputs.end; ++y) {
    const uint8_t* from = rows + (table.first[y] - first_row) * row;
    for (int i = 0; i < 3 * out.width; ++i) {
      const ptrdiff_t plane = planes == 1 ? 0 : i % 3 * stride;
      out.data[y * out.stride_bytes + i] = plain_output(from + plane + i / 3, row, table, y);
    }
  }
}

void exact_down_to_strip_reference(const uint8_t* rows, int planes, ptrdiff_t stride, int width,
                                   int first_row, const ResampleTable& table, IndexRange outputs,
                                   uint8_t* strip) {
  const ptrdiff_t row = planes * stride;
  for (int y = outputs.begin; y < outputs.end; ++y) {
    const uint8_t* from = rows + (table.first[y] - first_row) * row;
    for (int c = 0; c < planes; ++c) {
      for (int x = 0; x < width; ++x) {
        strip[(ptrdiff_t{x} * planes + c) * kStripRows + y - outputs.begin] =
            plain_output(from + c * stride + x, row, table, y);
      }
    }
  }
}

HWY_EXPORT(across);
HWY_EXPORT(down);
HWY_EXPORT(down_to_strip);

void exact_across(const uint8_t* columns, int planes, int first_column, const ResampleTable& table,
                  uint8_t* rows, ptrdiff_t stride) {
  HWY_DYNAMIC_DISPATCH(across)(columns, planes, first_column, table, rows, stride);
}

void exact_down(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
                const ResampleTable& table, IndexRange outputs, MutableImageView out) {
  HWY_DYNAMIC_DISPATCH(down)(rows, planes, stride, first_row, table, outputs, out);
}

void exact_down_to_strip(const uint8_t* rows, int planes, ptrdiff_t stride, int width,
                         int first_row, const ResampleTable& table, IndexRange outputs,
                         uint8_t* strip) {
  HWY_DYNAMIC_DISPATCH(down_to_strip)
  (rows, planes, stride, width, first_row, table, outputs, strip);
}

}  // namespace stoker
#endif
