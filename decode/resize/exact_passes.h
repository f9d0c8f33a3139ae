// The two passes of Pillow's resize, in the order that the policy selects. Strips of pixels go in
// from top to bottom, and rows of the output are finished as early as possible.
//
//   horizontal first: strip -> narrow rows -> rows of the output
//   vertical first:   strip -> wide rows -> strip of the output's height -> narrow rows -> output
//
// Rows are kept only until the outputs that need them are made, so the memory depends on the number
// of source rows per output row, not on the height of the crop.
//
// Owner: ExactPixels, reused for every image. Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>

#include "decode/aligned_buffer.h"
#include "decode/image.h"
#include "decode/jpeg/row_upsampling.h"
#include "decode/pixel_policy.h"
#include "decode/resize/resample_table.h"

namespace stoker {

class ExactPasses {
 public:
  explicit ExactPasses(PixelPolicy policy) : policy_(policy) {}

  void plan(const CropSpec& spec);
  // The part of the crop that the output depends on.
  IndexRange columns() const { return {across_.source_begin, across_.source_end}; }
  IndexRange rows() const { return {down_.source_begin, down_.source_end}; }
  // Returns the memory for pixels of so many planes, which the caller reserves. REQUIRES: plan().
  std::array<BufferNeed<uint8_t>, 3> needs(int planes);

  // Starts an image. The first strip's first row is the crop's row `first_row`, which may be
  // negative.
  void begin(int first_row, MutableImageView out);
  // Takes the next strip, (column, planes, kStripRows); its first column is the crop's column
  // `first_column`.
  void strip(const uint8_t* columns, int first_column);

  void release();
  int64_t scratch_bytes() const;

 private:
  bool is_vertical_first() const { return order_ == PassOrder::vertical_first; }
  int longest_reach() const;
  bool is_whole(int output) const;
  void drop_rows();
  void finish_rows();
  void finish_strips();

  const PixelPolicy policy_;
  PassOrder order_ = PassOrder::horizontal_first;
  ResampleTable across_;  // of the crop's pixels
  ResampleTable down_;
  ResampleTable columns_alike_;  // vertical first: copies the needed columns
  ResampleTable outputs_alike_;  // vertical first: copies the rows of the output
  int planes_ = 0;
  ptrdiff_t stride_ = 0;  // of rows_
  MutableImageView out_;
  int first_ = 0;                // the crop's row that is the first in rows_
  int count_ = 0;                // rows in rows_
  int finished_ = 0;             // rows of out_ (vertical first: after the vertical pass)
  AlignedBuffer<uint8_t> rows_;  // (row, planes, stride_)
  // Vertical first:
  AlignedBuffer<uint8_t> strip_;   // (column, planes, kStripRows), rows of the output
  AlignedBuffer<uint8_t> narrow_;  // (kStripRows, planes, padded output width)
};

}  // namespace stoker
