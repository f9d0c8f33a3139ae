// Resizes colour planes in three steps: strips of samples (decode/jpeg/idct_kernels.h) are
// resampled horizontally; the results become rows of red, green and blue, one per row of pixels;
// these are resampled vertically to rows of RGB. Integer arithmetic with 7 fractional bits in
// 16-bit lanes. The instruction set is chosen at run time (Google Highway); all of them give the
// same bytes.
//
// Colours are converted before the vertical resize, and rounded to integers there, because Pillow's
// are integers there, too: most of the remaining difference from Pillow is rounding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/image.h"
#include "decode/jpeg/row_upsampling.h"
#include "decode/resize/planar_axis.h"

namespace stoker {

inline constexpr int kRowPadding = 32;  // rows are readable up to a multiple of this

// Returns the size of a row of int16 that holds `count` outputs of an axis, with its padding.
inline constexpr int padded_row(int count) {
  return (count + kRowPadding - 1) / kRowPadding * kRowPadding;
}

// Resamples the kStripRows rows of a strip, whose first column is sample `first_column` of the
// plane. Row r of the result begins at rows + r * stride and gets axis.padded_count values: samples
// times 128 (exact where all outputs of a group are single samples). REQUIRES: axis.max_taps
// columns more than the axis' source_end are readable.
void resize_strip(const uint8_t* columns, int first_column, const PlanarAxis& axis, int16_t* rows,
                  ptrdiff_t stride);

// The planes of which rows of pixels are made: grey, or Y, Cb, Cr.
struct ColourPlanes {
  PlaneRows planes[3];
  int plane_count = 0;
  int count = 0;               // values per row, a multiple of kRowPadding
  ChromaRounding rounding[2];  // of even and odd rows of pixels
};

// Makes the rows of pixels [begin, end) of the image: for each, `plane_count` rows (R, G, B) of
// `count` bytes.
void colour_rows(const ColourPlanes& planes, int begin, int end, uint8_t* out);

// Resizes the rows [begin, ...) that colour_rows made vertically, by `down`, an axis of pixels, and
// writes the rows `outputs` of `out`, RGB.
void resize_rows(const uint8_t* rows, int plane_count, int count, const PlanarAxis& down, int begin,
                 IndexRange outputs, MutableImageView out);

// The plain twins: the same bytes, no SIMD.
void resize_strip_reference(const uint8_t* columns, int first_column, const PlanarAxis& axis,
                            int16_t* rows, ptrdiff_t stride);
void colour_rows_reference(const ColourPlanes& planes, int begin, int end, uint8_t* out);
void resize_rows_reference(const uint8_t* rows, int plane_count, int count, const PlanarAxis& down,
                           int begin, IndexRange outputs, MutableImageView out);

}  // namespace stoker
