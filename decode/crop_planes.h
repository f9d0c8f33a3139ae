// From coefficients to rows: the colour planes of a crop at their native resolution, filled an MCU
// row at a time, and resized straight to the output. The pixel half of CropDecoder; the bits are
// ScanReader's.
//
// Owner: CropDecoder, reused for every image. Threads: one at a time.
#pragma once

#include <cstdint>

#include "decode/aligned_buffer.h"
#include "decode/crop_spec.h"
#include "decode/image.h"
#include "decode/jpeg_headers.h"
#include "decode/planar_axis.h"
#include "decode/planar_resize.h"
#include "decode/scan_reader.h"

namespace stoker {

// The most bytes that a crop's planes may take; the axes beside them stay below 8 MiB.
inline constexpr int64_t kMaxPlaneScratch = int64_t{36} << 20;

class CropPlanes {
 public:
  // Plans the resize and finds the MCUs that the output depends on. False: too large a crop or too
  // strong a reduction for this decoder. REQUIRES: spec is sane, its crop lies inside the image.
  bool plan(const BaselineJpeg& jpeg, const CropSpec& spec);

  // In MCUs: the part of the image that store_row is called for, row by row.
  const Box& mcus() const { return mcus_; }
  // One past the last MCU row that libjpeg-turbo reads for the same crop.
  int checked_rows() const { return checked_rows_; }

  // Starts with the first row. REQUIRES: plan().
  void begin(MutableImageView out);
  // Gives the reader cleared memory for the coefficients of a row of MCUs.
  void begin_row(ScanReader& reader);
  // Turns them into samples of the planes. `row` counts from mcus().y; rows come in turn.
  void finish_row(int row);
  // Resizes what this row made whole, converts it to RGB, and finishes the rows of the output that
  // need no more; so all that lies between is still in a cache. The last row finishes the output.
  void resize(int row);

  int64_t scratch_bytes() const;

 private:
  struct Plane {
    int across = 1, down = 1;  // blocks per MCU
    int quant = 0;
    int axis = 0;  // the plane whose axis it shares: its own number or a smaller one
    ComponentUpsampling upsampling;
    int groups = 0;   // of four blocks, per row of blocks
    int columns = 0;  // samples per row
    int strips = 0;
    Size first;           // the plane's sample that is the first one here
    int64_t samples = 0;  // offsets into the buffers
    int64_t coefficients = 0;
    int64_t rows = 0;
  };

  bool plan_axis(const BaselineJpeg& jpeg, const CropSpec& spec, int c);
  bool plan_rows(const BaselineJpeg& jpeg, const CropSpec& spec);
  void find_mcus(const BaselineJpeg& jpeg);
  void lay_out();
  bool reserve();
  uint8_t* strip_of(const Plane& plane, int block_row);
  int resize_strips(const Plane& plane, int row);

  const BaselineJpeg* jpeg_ = nullptr;
  int count_ = 0;
  Plane planes_[3];
  PlanarAxis across_[3];
  PlanarAxis down_;       // of the pixels: rows come to full height before they are resized
  ColourPlanes colours_;  // how they do
  Box mcus_;
  int checked_rows_ = 0;
  MutableImageView out_;
  int pixels_end_ = 0;  // one past the last row of pixels that is made
  int finished_ = 0;    // rows of out_
  int64_t coefficient_count_ = 0, sample_count_ = 0, row_count_ = 0, pixel_count_ = 0;
  int row_stride_ = 0;                   // of rows_, in values
  AlignedBuffer<int16_t> coefficients_;  // of one row of MCUs
  AlignedBuffer<uint8_t> samples_;       // one or two strips per plane (idct_kernels.h)
  AlignedBuffer<int16_t> rows_;          // planes resampled horizontally, (rows, row_stride_)
  AlignedBuffer<uint8_t> pixels_;        // (rows of pixels, R G B or grey, row_stride_)
};

}  // namespace stoker
