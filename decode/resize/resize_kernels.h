// The inner loops of the resize, in Google Highway: one set of kernels per instruction set, chosen
// at run time; all of them give the same bytes. RowResizer owns the buffers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/resize/resample_table.h"

namespace stoker {

inline constexpr int kMaxRowGroup = 16;     // rows that go through the horizontal pass together
inline constexpr int kMaxVectorBytes = 64;  // rows of scratch are padded by this much

// Returns how many rows the horizontal kernel of this machine takes at once: 1..kMaxRowGroup.
int resize_row_group();

// Returns the bytes of `scratch` that resize_rows_horizontal needs for `source_width` pixels.
size_t resize_scratch_bytes(int source_width, int out_width);

// Makes table.quads on machines that need them (quad_sums_inl.h). `aligned`: for the horizontal
// kernel; otherwise for the vertical one.
void resize_split_weights(bool aligned, ResampleTable& table);

// Resamples rows[r] by `table` into out_rows[r], r < row_count <= resize_row_group(). rows[r]
// points at source pixel table.source_begin; nothing outside [source_begin, source_end) is read.
// out_rows[r] has room for table.key.count pixels, RGB. REQUIRES: resize_split_weights(true,
// table).
void resize_rows_horizontal(const uint8_t* const* rows, int row_count, const ResampleTable& table,
                            uint8_t* scratch, uint8_t* const* out_rows);

// Sets out[b] = sum over t of rows[t][b] * weight t, b < bytes. rows[t] is readable up to
// kMaxVectorBytes past `bytes`. `index` is the output row's place in the table. REQUIRES:
// resize_split_weights(false, table).
void resize_row_vertical(const uint8_t* const* rows, const ResampleTable& table, int index,
                         size_t bytes, uint8_t* out);

// Adds the sum over r of rows[r][b] * weights[r] to sums[b], b < bytes, r < row_count: a part of an
// output row's sum, in fixed point with kWeightBits fractional bits.
void resize_add_rows(const uint8_t* const* rows, const int32_t* weights, int row_count,
                     size_t bytes, int32_t* sums);

// Sets out[b] = sums[b] without its fraction, clipped to 0..255. A caller that rounds starts its
// sums with one half.
void resize_finish_sums(const int32_t* sums, size_t bytes, uint8_t* out);

// The plain twins of the last two: the same values, no SIMD.
void resize_add_rows_reference(const uint8_t* const* rows, const int32_t* weights, int row_count,
                               size_t bytes, int32_t* sums);
void resize_finish_sums_reference(const int32_t* sums, size_t bytes, uint8_t* out);

}  // namespace stoker
