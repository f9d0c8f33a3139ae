// Makes the pixels of the `fast` policy: samples are resized horizontally at their native
// resolution, then converted to RGB at the output's width, then resized vertically; 7 fractional
// bits (decode/resize/planar_resize.h).
#pragma once

#include "decode/jpeg/crop_pixels.h"
#include "decode/resize/planar_axis.h"
#include "decode/resize/planar_resize.h"

namespace stoker {

class FastPixels final : public CropPixels {
 public:
  bool plan(const JpegFrame& jpeg, const CropSpec& spec) override;
  void begin(MutableImageView out) override;
  bool finish_row(int row, RowSlot slot) override;
  void resize(int row) override;
  void release() override;
  int64_t scratch_bytes() const override;

 private:
  struct Plane {
    int axis = 0;  // the plane whose axis it shares: its own number or a smaller one
    ComponentUpsampling upsampling;
    int64_t rows = 0;  // offset into rows_
  };

  bool plan_axis(const JpegFrame& jpeg, const CropSpec& spec, int c);
  bool plan_rows(const JpegFrame& jpeg, const CropSpec& spec);
  void find_mcus(const JpegFrame& jpeg);
  bool reserve(const JpegFrame& jpeg);
  int resize_strips(int c, int row);

  int count_ = 0;
  Plane planes_[3];
  PlanarAxis across_[3];
  PlanarAxis down_;       // axis of pixels: rows come to full height before they are resized
  ColourPlanes colours_;  // brings rows to full height
  MutableImageView out_;
  int pixels_end_ = 0;             // one past the last row of pixels that is made
  int finished_ = 0;               // rows of out_
  int row_stride_ = 0;             // of rows_, in values
  AlignedBuffer<int16_t> rows_;    // planes resampled horizontally, (rows, row_stride_)
  AlignedBuffer<uint8_t> pixels_;  // (rows of pixels, R G B or grey, row_stride_)
};

}  // namespace stoker
