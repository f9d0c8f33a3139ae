// The resize of colour planes: strips of samples (decode/jpeg/idct_kernels.h) -> rows resampled
// horizontally -> rows of red, green and blue, one per row of pixels -> finished rows of RGB.
// Integer arithmetic with 7 fractional bits in 16-bit lanes; all instruction sets give the same
// bytes. Chosen at run time (Google Highway).
//
// Colours come before the vertical resize, and are whole numbers there, because Pillow has whole
// numbers there, too: most of what is left of the difference to it is rounding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/image.h"
#include "decode/jpeg/row_upsampling.h"
#include "decode/resize/planar_axis.h"

namespace stoker {

inline constexpr int kRowPadding = 32;  // rows are readable up to a multiple of this

// Pixels of a row of int16 that holds `count` outputs of an axis.
inline constexpr int padded_row(int count) {
  return (count + kRowPadding - 1) / kRowPadding * kRowPadding;
}

// Resamples the kStripRows rows of a strip, whose first column is sample `first_column` of the
// plane. Row r of the result begins at rows + r * stride and gets axis.padded_count values: samples
// times 128 (exactly, where a group's outputs are single samples). REQUIRES: axis.max_taps columns
// more than the axis' source_end are readable.
void resize_strip(const uint8_t* columns, int first_column, const PlanarAxis& axis, int16_t* rows,
                  ptrdiff_t stride);

// What makes rows of pixels: grey, or Y, Cb, Cr.
struct ColourPlanes {
  PlaneRows planes[3];
  int plane_count = 0;
  int count = 0;               // values per row, a multiple of kRowPadding
  ChromaRounding rounding[2];  // of even and odd rows of pixels
};

// Rows of pixels [begin, end) of the image: for each, `plane_count` rows (R, G, B) of `count`
// bytes.
void colour_rows(const ColourPlanes& planes, int begin, int end, uint8_t* out);

// The rows [begin, ...) that colour_rows made -> `outputs` of the rows that `down`, an axis of
// pixels, resizes them to, RGB, as wide as `out`.
void resize_rows(const uint8_t* rows, int plane_count, int count, const PlanarAxis& down, int begin,
                 IndexRange outputs, MutableImageView out);

// The plain twins: the same bytes, no SIMD.
void resize_strip_reference(const uint8_t* columns, int first_column, const PlanarAxis& axis,
                            int16_t* rows, ptrdiff_t stride);
void colour_rows_reference(const ColourPlanes& planes, int begin, int end, uint8_t* out);
void resize_rows_reference(const uint8_t* rows, int plane_count, int count, const PlanarAxis& down,
                           int begin, IndexRange outputs, MutableImageView out);

}  // namespace stoker
