// The resize as a sink of source rows: rows of the crop go in from top to bottom, and an output row
// is finished when its last source row has arrived. If the horizontal pass is first, it keeps a
// rolling window of rows that went through that pass; if the vertical pass is first, the sums of
// the output rows that are not complete yet. So its memory does not grow with the height of the
// crop.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/crop_spec.h"
#include "decode/image.h"
#include "decode/pixel_policy.h"
#include "decode/resize/resample_table.h"
#include "decode/scratch_vector.h"

namespace stoker {

// Takes the rows of a region of an image, from top to bottom, RGB.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // Takes the next `count` rows; row i begins at first + i * stride_bytes. Must not throw.
  virtual void rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) = 0;
};

// Owner: PillowResize or ImageDecoder, reused for every image. Threads: one at a time.
class RowResizer final : public RowSink {
 public:
  explicit RowResizer(PixelPolicy policy) : policy_(policy) {}

  // Prepares for one image. Returns the part of the crop, relative to the crop, whose rows the
  // caller must pass. REQUIRES: spec is sane (is_sane below), out's size equals spec.window's;
  // `out` outlives the last rows().
  Box begin(const CropSpec& spec, MutableImageView out);
  void rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) override;

  int64_t scratch_bytes() const;

 private:
  bool is_vertical_first() const { return order_ == PassOrder::vertical_first; }
  void plan_horizontal_first();
  void plan_vertical_first();
  void across(const uint8_t* const* rows, int count);
  uint8_t* resampled_row(int source_row);  // where the row's horizontal result goes
  void emit_finished_rows();
  void sum(const uint8_t* const* rows, int count);
  void finish_sum();
  void emit_summed_rows();

  const PixelPolicy policy_;
  PassOrder order_ = PassOrder::horizontal_first;
  ResampleTable across_;  // horizontal
  ResampleTable down_;    // vertical
  MutableImageView out_;
  int received_ = 0;                // source rows so far, counted from down_.source_begin
  int emitted_ = 0;                 // output rows so far
  ScratchVector<uint8_t> columns_;  // the horizontal kernel's scratch
  // If the horizontal pass is first:
  int ring_rows_ = 0;            // rows of ring_ in use
  size_t ring_stride_ = 0;       // bytes
  ScratchVector<uint8_t> ring_;  // (ring_rows_, window width, 3) u8
  std::vector<const uint8_t*> taps_;
  // If the vertical pass is first:
  size_t wide_ = 0;              // bytes of the part of a source row that is needed
  int open_ = 0;                 // output rows that a source row may belong to
  int summed_ = 0;               // output rows whose sum is complete
  ScratchVector<int32_t> sums_;  // (open_, wide_) fixed point
  ScratchVector<uint8_t>
      wide_rows_;  // (kMaxRowGroup, wide_): complete sums that are not emitted yet
};

// Returns true if the sizes are positive and the window is inside `resized`: begin() needs this.
bool is_sane(const CropSpec& spec);

}  // namespace stoker
