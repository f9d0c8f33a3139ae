// Makes the output from samples: the second half of CropDecoder. FastPixels resizes the colour
// planes at their native resolution; ExactPixels does what libjpeg and Pillow do, bit for bit.
// ScanReader reads the bits of the file.
//
// Owner: CropDecoder, reused for every image. Threads: one at a time.
#pragma once

#include <cstdint>

#include "decode/crop_spec.h"
#include "decode/image.h"
#include "decode/jpeg/crop_samples.h"
#include "decode/jpeg/headers.h"
#include "decode/jpeg/scan_reader.h"

namespace stoker {

// The most bytes that a crop's planes may take; the axes beside them stay below 8 MiB.
inline constexpr int64_t kMaxPlaneScratch = int64_t{36} << 20;

class CropPixels {
 public:
  virtual ~CropPixels() = default;

  // Plans the resize and finds the MCUs that the output depends on. Returns false if the crop is
  // too large, the reduction too strong or the file too unusual. REQUIRES: spec is sane, its crop
  // lies inside the image.
  virtual bool plan(const JpegFrame& jpeg, const CropSpec& spec) = 0;

  // Returns, in MCUs, the part of the image for which finish_row is called row by row.
  const Box& mcus() const { return samples_.mcus(); }
  // Returns one past the last MCU row that libjpeg-turbo reads for the same crop.
  int checked_rows() const { return checked_rows_; }

  // Starts with the first row. REQUIRES: plan().
  virtual void begin(MutableImageView out) = 0;
  // Allocates what a second row of MCUs at once needs. Returns false if that would be too much.
  bool reserve_second_row() { return samples_.reserve_second_row(); }
  // Gives the reader cleared memory for the coefficients of a row of MCUs.
  void begin_row(ScanReader& reader, RowSlot slot) { samples_.begin_row(reader, slot); }
  // Takes coefficients that are complete instead, as the first of two rows.
  void begin_row(CropCoefficients& complete, int row) { samples_.begin_row(complete, row); }
  // Turns the coefficients into samples of the planes. `row` counts from mcus().y; rows come in
  // order. Returns false if CropDecoder cannot take this file after all.
  virtual bool finish_row(int row, RowSlot slot) = 0;
  // Resizes the rows that this row of MCUs completed, and finishes the output rows that need no
  // more; so all data between the stages are still in a cache. The last row finishes the output.
  virtual void resize(int row) = 0;

  virtual void release() = 0;  // frees all scratch that depends on the size of a crop
  virtual int64_t scratch_bytes() const = 0;

 protected:
  CropSamples samples_;
  int checked_rows_ = 0;
};

}  // namespace stoker
