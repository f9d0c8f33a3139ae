// The resize of colour planes: strips of samples (idct_kernels.h) -> rows that are resampled
// horizontally -> finished rows of RGB. Integer arithmetic with 7 fractional bits in 16-bit lanes;
// all instruction sets give the same bytes. Chosen at run time (Google Highway).
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/planar_axis.h"

namespace stoker {

inline constexpr int kRowPadding = 32;  // rows are readable up to a multiple of this

// Pixels of a row of int16 that holds `count` outputs of an axis.
inline constexpr int padded_row(int count) {
  return (count + kRowPadding - 1) / kRowPadding * kRowPadding;
}

// Resamples the kStripRows rows of a strip, whose first column is sample `first_column` of the
// plane. Row r of the result begins at rows + r * stride and gets axis.padded_count values: samples
// times 128. REQUIRES: axis.max_taps columns more than the axis' source_end are readable.
void resize_strip(const uint8_t* columns, int first_column, const PlanarAxis& axis, int16_t* rows,
                  ptrdiff_t stride);

// The rows that one output row is made from, for one plane.
struct RowSum {
  const int16_t* rows = nullptr;     // the first one
  ptrdiff_t stride = 0;              // to the next, in values
  const int32_t* weights = nullptr;  // as in PlanarAxis
  int taps = 0;
};

// One row of RGB, `width` pixels, from one plane (grey) or three (Y, Cb, Cr).
void finish_row(const RowSum* planes, int plane_count, int width, uint8_t* out);

// The plain twins: the same bytes, no SIMD.
void resize_strip_reference(const uint8_t* columns, int first_column, const PlanarAxis& axis,
                            int16_t* rows, ptrdiff_t stride);
void finish_row_reference(const RowSum* planes, int plane_count, int width, uint8_t* out);

}  // namespace stoker
