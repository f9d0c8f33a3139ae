// The passes of Pillow's resize on strips and rows, bit for bit; exact_passes.h puts them together.
// Pillow rounds to bytes in between, too. All instruction sets give the same bytes. Chosen at run
// time (Google Highway).
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/image.h"
#include "decode/jpeg/row_upsampling.h"
#include "decode/resize/resample_table.h"

namespace stoker {

inline constexpr int kExactRowPadding = 32;  // a row's stride is a multiple of this
inline constexpr int kStripOutputs = 16;     // rows that exact_down_to_strip makes at once

// columns: (column, planes, kStripRows), of which the first is the crop's column `first_column`.
// Row r, plane c of the result begins at rows + (r * planes + c) * stride; stride >= the table's
// count, rounded up to kExactRowPadding.
void exact_across(const uint8_t* columns, int planes, int first_column, const ResampleTable& table,
                  uint8_t* rows, ptrdiff_t stride);

// rows: (row, planes, stride), of which the first is the crop's row `first_row`. Makes `outputs` of
// the rows of `out`, RGB; one plane is grey.
void exact_down(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
                const ResampleTable& table, IndexRange outputs, MutableImageView out);

// The same rows, whose first `width` values are wanted -> at most kStripOutputs `outputs` as rows
// of a strip, (column, planes, kStripRows); the first becomes its row 0, and what follows the last
// one up to kStripOutputs is undefined. A strip has room for `width` columns rounded up to
// kExactRowPadding, and is aligned to 16 bytes. REQUIRES: the table is no identity.
void exact_down_to_strip(const uint8_t* rows, int planes, ptrdiff_t stride, int width,
                         int first_row, const ResampleTable& table, IndexRange outputs,
                         uint8_t* strip);

// The plain twins: the same bytes, no SIMD.
void exact_across_reference(const uint8_t* columns, int planes, int first_column,
                            const ResampleTable& table, uint8_t* rows, ptrdiff_t stride);
void exact_down_reference(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
                          const ResampleTable& table, IndexRange outputs, MutableImageView out);
void exact_down_to_strip_reference(const uint8_t* rows, int planes, ptrdiff_t stride, int width,
                                   int first_row, const ResampleTable& table, IndexRange outputs,
                                   uint8_t* strip);

}  // namespace stoker
