// The coefficients of a crop's blocks while the scans of a progressive file bring them bit by bit,
// and for every block of the picture a mask of those that are not zero (progressive_kernels.h).
//
// Owner: ProgressiveReader, reused for every image. Threads: one at a time. Memory: 128 bytes per
// block of the crop and 8 bytes per block of the picture, checked before it is allocated.
#pragma once

#include <cstdint>

#include "decode/aligned_buffer.h"
#include "decode/image.h"
#include "decode/jpeg/headers.h"

namespace stoker {

// Returns how many units hold `count`, the last of them not always full.
inline int units_of(int count, int unit) { return (count + unit - 1) / unit; }

class CropCoefficients {
 public:
  // Makes room for the blocks of these MCUs, and clears everything. Returns false if that would be
  // more than `limit` bytes.
  bool begin(const JpegFrame& jpeg, const Box& mcus, int64_t limit);

  // Returns how many blocks a component has, without those that only fill the last MCUs.
  Size blocks(int component) const { return planes_[component].blocks; }
  // Returns which of them are kept.
  const Box& kept(int component) const { return planes_[component].kept; }

  // Returns the coefficients of a row of blocks, counted from the crop's first; laid out as
  // entropy_decoder.h describes.
  int16_t* row(int component, int row) {
    const Plane& plane = planes_[component];
    return coefficients_.data() + plane.coefficients + int64_t{row} * plane.row_size;
  }
  // Returns the masks of all blocks, row by row.
  uint64_t* nonzero(int component) { return nonzero_.data() + planes_[component].nonzero; }

  void release();
  int64_t scratch_bytes() const { return coefficients_.bytes() + nonzero_.bytes(); }

 private:
  struct Plane {
    Size blocks;
    Box kept;
    int64_t row_size = 0;      // coefficients
    int64_t coefficients = 0;  // offsets into the buffers
    int64_t nonzero = 0;
  };

  Plane planes_[3];
  AlignedBuffer<int16_t> coefficients_;
  AlignedBuffer<uint64_t> nonzero_;
};

}  // namespace stoker
