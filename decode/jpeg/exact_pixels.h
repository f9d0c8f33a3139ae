// Makes the pixels of the exact policies, bit for bit those of libjpeg-turbo followed by Pillow's
// resize (exact_colours.h, decode/resize/exact_passes.h).
//
// Handles grey, 4:4:4, 4:2:2, 4:4:0 and 4:2:0. JpegDecoder handles other samplings, and files whose
// coefficients belong to no picture (idct_kernels.h).
#pragma once

#include "decode/jpeg/crop_pixels.h"
#include "decode/jpeg/exact_colours.h"
#include "decode/resize/exact_passes.h"

namespace stoker {

class ExactPixels final : public CropPixels {
 public:
  explicit ExactPixels(PixelPolicy policy) : passes_(policy) {}
  bool plan(const JpegFrame& jpeg, const CropSpec& spec) override;
  void begin(MutableImageView out) override;
  bool finish_row(int row, RowSlot slot) override;
  void resize(int row) override;
  void release() override;
  int64_t scratch_bytes() const override;

 private:
  bool plan_chroma(const JpegFrame& jpeg);
  void find_mcus(const JpegFrame& jpeg);
  bool reserve();
  int whole_rows(int row) const;
  void repeat_edge_rows(int strip);
  const uint8_t* chroma_rows(int c, int group);
  const uint8_t* make_colours(int strip);

  ExactPasses passes_;
  Size crop_;             // the first pixel of the crop
  IndexRange columns_;    // the image's pixels that the output depends on
  IndexRange rows_down_;  // and their rows
  int planes_ = 0;
  Size chroma_;                // samples of a chroma plane
  IndexRange chroma_columns_;  // the samples in the same places as columns_
  bool halves_across_ = false, halves_down_ = false;
  int strips_done_ = 0;
  AlignedBuffer<int16_t> chroma_sums_;  // scratch of exact_colours
  AlignedBuffer<uint8_t> colours_;      // (column, 3, kStripRows) of one strip
};

}  // namespace stoker
