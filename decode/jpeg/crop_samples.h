// Turns coefficients into samples: the colour planes of a crop at their native resolution, filled
// one MCU row at a time. Does not handle pixels.
//
// Owner: CropPixels, reused for every image. Threads: one at a time.
#pragma once

#include <cstdint>

#include "decode/aligned_buffer.h"
#include "decode/image.h"
#include "decode/jpeg/crop_coefficients.h"
#include "decode/jpeg/headers.h"
#include "decode/jpeg/idct_kernels.h"
#include "decode/jpeg/row_upsampling.h"
#include "decode/jpeg/scan_reader.h"

namespace stoker {

// The columns and rows of samples, per component, that an output depends on.
struct NeededSamples {
  IndexRange across[3];
  IndexRange down[3];
};

// Returns the MCUs that hold these samples.
Box mcus_of(const JpegFrame& jpeg, const NeededSamples& needed);

// Returns one past the last MCU row that libjpeg-turbo reads if the last row of pixels is
// `last_pixel` and the last row of `mcus` is needed, too: its upsampling may use the next row of
// samples, and it reads some files several MCU rows at once.
int checked_mcu_rows(const JpegFrame& jpeg, int last_pixel, const Box& mcus);

// Part of a colour plane. Strip s holds its rows [s * kStripRows, (s + 1) * kStripRows).
struct SamplePlane {
  int across = 1, down = 1;  // blocks per MCU
  int quant = 0;
  int groups = 0;   // of four blocks each, per row of blocks
  int columns = 0;  // samples per row
  int strips = 0;
  int buffers = 1;      // number of strips that are kept: the last ones
  Size first;           // the first sample here, as coordinates in the plane
  int64_t samples = 0;  // offsets into the buffers
  int64_t coefficients = 0;
};

// Which of two rows of MCUs that are decoded at once.
enum class RowSlot { first, second };
inline constexpr int64_t kMaxSecondRow = int64_t{1} << 20;  // bytes

class CropSamples {
 public:
  // Starts the layout for these MCUs. Then call add_plane once per component, then reserve.
  void plan(const JpegFrame& jpeg, const Box& mcus);
  // Adds the next component: `spare_columns` more columns are readable after its last, and
  // `strips_kept` strips are kept.
  void add_plane(int spare_columns, int strips_kept);
  // Allocates all that and the caller's own buffers. Returns false if it would be more than `limit`
  // bytes.
  template <class... T>
  bool reserve(int64_t limit, BufferNeed<T>... others) {
    return grow_within(limit, BufferNeed{&coefficients_, coefficient_count_},
                       BufferNeed{&samples_, sample_count_}, others...);
  }

  const Box& mcus() const { return mcus_; }
  const SamplePlane& plane(int c) const { return planes_[c]; }

  // Allocates memory for a second row of coefficients. Returns false if that would be more than
  // kMaxSecondRow bytes.
  bool reserve_second_row() {
    return grow_within(kMaxSecondRow, BufferNeed{&second_row_, coefficient_count_});
  }

  // Gives the reader cleared memory for the coefficients of a row of MCUs.
  void begin_row(ScanReader& reader, RowSlot slot);
  // Takes coefficients that are complete instead, as the first of two rows. `row` counts from
  // mcus().y.
  void begin_row(CropCoefficients& complete, int row);
  // Turns the coefficients into samples. `row` counts from mcus().y; rows come in order. Returns
  // false if these coefficients belong to no picture, and libjpeg's sums may overflow
  // (idct_kernels.h); the samples are written anyway.
  bool finish_row(int row, RowSlot slot);

  // Returns the first column of a strip that is still kept.
  uint8_t* strip(int c, int strip) {
    const SamplePlane& plane = planes_[c];
    return samples_.data() + plane.samples +
           int64_t{strip % plane.buffers} * plane.columns * kStripRows;
  }

  void release() {
    coefficients_.release();
    second_row_.release();
    samples_.release();
  }
  int64_t scratch_bytes() const {
    return coefficients_.bytes() + second_row_.bytes() + samples_.bytes();
  }

 private:
  int16_t* coefficients(RowSlot slot) {
    return slot == RowSlot::first ? coefficients_.data() : second_row_.data();
  }

  const JpegFrame* jpeg_ = nullptr;
  Box mcus_;
  int count_ = 0;
  SamplePlane planes_[3];
  size_t coefficient_count_ = 0, sample_count_ = 0;
  const int16_t* rows_[2][3] = {};       // the coefficients of the current row of each slot
  AlignedBuffer<int16_t> coefficients_;  // of one row of MCUs
  AlignedBuffer<int16_t> second_row_;    // of another one
  AlignedBuffer<uint8_t> samples_;       // strips of every plane
};

}  // namespace stoker
