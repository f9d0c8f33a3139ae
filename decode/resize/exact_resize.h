// The passes of Pillow's resize on strips and rows, bit for bit; exact_passes.h combines them. Like
// Pillow, they round to bytes after each pass. The instruction set is chosen at run time (Google
// Highway); all of them give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/image.h"
#include "decode/jpeg/row_upsampling.h"
#include "decode/resize/resample_table.h"

namespace stoker {

inline constexpr int kExactRowPadding = 32;  // a row's stride is a multiple of this
inline constexpr int kStripOutputs = 16;     // rows that exact_down_to_strip makes at once

// Resizes horizontally. columns: (column, planes, kStripRows); the first is the crop's column
// `first_column`. Row r, plane c of the result begins at rows + (r * planes + c) * stride.
// stride >= the table's count, rounded up to kExactRowPadding.
void exact_across(const uint8_t* columns, int planes, int first_column, const ResampleTable& table,
                  uint8_t* rows, ptrdiff_t stride);

// Resizes vertically. rows: (row, planes, stride); the first is the crop's row `first_row`. Makes
// the rows `outputs` of `out`, RGB; one plane is grey.
void exact_down(const uint8_t* rows, int planes, ptrdiff_t stride, int first_row,
                const ResampleTable& table, IndexRange outputs, MutableImageView out);

// Resizes the first `width` values of the same rows vertically, and writes the rows `outputs` (at
// most kStripOutputs) as rows of a strip, (column, planes, kStripRows). The first becomes its row
// 0; rows after the last one up to kStripOutputs are undefined. The strip has room for `width`
// columns rounded up to kExactRowPadding, and is aligned to 16 bytes. REQUIRES: the table is no
// identity.
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
