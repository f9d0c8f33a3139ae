// Pillow's resize of strips, bit for bit: strips of pixels (exact_colours.h) -> rows of red, green
// and blue at the output's width -> finished rows of RGB. Pillow rounds to bytes in between, too.
// All instruction sets give the same bytes. Chosen at run time (Google Highway).
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/image.h"
#include "decode/resample_table.h"
#include "decode/row_upsampling.h"

namespace stoker {

inline constexpr int kExactRowPadding = 32;  // a row's stride is a multiple of this

// columns: (column, planes, kStripRows), of which the first is the crop's column `first_column`.
// Row r, plane c of the result begins at rows + (r * planes + c) * stride; stride >= the table's
// count, rounded up to kExactRowPadding.
void exact_across(const uint8_t* columns, int planes, int first_column, const ResampleTable& table,
                  uint8_t* rows, ptrdiff_t stride);

// rows: (row, planes, stride), of which the first is the crop's row `first_row`. Makes `outputs` of
// the rows of `out`, RGB; one plane is grey.
void exact_down(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
                const ResampleTable& table, Span outputs, MutableImageView out);

// The plain twins: the same bytes, no SIMD.
void exact_across_reference(const uint8_t* columns, int planes, int first_column,
                            const ResampleTable& table, uint8_t* rows, ptrdiff_t stride);
void exact_down_reference(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
                          const ResampleTable& table, Span outputs, MutableImageView out);

}  // namespace stoker
