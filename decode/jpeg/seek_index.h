// Places inside a JPEG's entropy-coded data at which a decoder can begin: one per row of MCUs, or
// one per 8 MCUs as well. With it CropDecoder reads only what a crop shows.
//
// An index is a short sequence of bytes that is kept beside the file (pipeline/seek_index/file.h):
//
//   u8 step      MCUs between two places of a row; 0 = only where rows begin
//   u8 x 5       number of bits of the values below: bits from the scan's start, bits from the
//                row's start, the DC predictors of the three components
//   bits         per row of MCUs: its place (bits from the scan's start, predictors), then those of
//                its other groups (bits from the row's start, predictors); from the lowest bit up
//   u64 seal     XXH3 of everything above, seeded with XXH3 of the whole JPEG file
//
// Distances count bits of the file, stuffing and markers included, so that nothing before a place
// has to be read. Predictors are two's complement. All little-endian.
//
// An index is made only of a file that decodes cleanly from its first MCU to its last, and its seal
// holds only for exactly those bytes. So where the seal holds, the whole file is known to be good,
// and rows that are not read cannot hide damage. The seal finds accidents, not forgery; but
// whatever an index contains, no memory outside the file is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/jpeg/headers.h"
#include "decode/jpeg/scan_reader.h"

namespace stoker {

// Larger images get no index: it would not be small. With this limit it has at most 1.5 MiB.
inline constexpr int kMaxSeekPlaces = 1 << 17;

// MCUs between two places of a row.
enum class SeekStep : uint8_t { row = 0, eight = 8 };

// Reads places from an index: a view of its bytes. Threads: const calls from any.
class SeekIndex {
 public:
  // Returns false if it is damaged or not an index of exactly these bytes. `encoded` must live as
  // long as this.
  bool open(std::span<const uint8_t> encoded, std::span<const uint8_t> bytes,
            const BaselineJpeg& jpeg);

  // MCUs between the places of a row; mcus_across if there is only one.
  int step() const { return step_; }
  int groups() const { return groups_; }  // places per row
  // Finds where the group's first MCU begins; `group` == groups() is the next row's first one.
  // Returns false if there is none (after the last row), or if the index is damaged.
  bool find(int row, int group, ScanPoint& point) const;

 private:
  uint32_t take(size_t& bit, int count) const;

  std::span<const uint8_t> encoded_;
  int rows_ = 0, step_ = 0, groups_ = 0;
  int scan_bits_ = 0, row_bits_ = 0, dc_bits_[3] = {};
  size_t scan_bytes_ = 0;
};

// Makes indexes. Owner: one per thread, reused; keeps its scratch. Threads: one at a time.
class SeekIndexBuilder {
 public:
  // Reads the whole scan. Returns false if CropDecoder does not take the file, or if it is too
  // large or damaged; ImageDecoder reports which. `encoded` is replaced.
  bool build(std::span<const uint8_t> bytes, SeekStep step, std::vector<uint8_t>& encoded);

 private:
  bool walk(std::span<const uint8_t> bytes, int step);
  void write(SeekStep step, std::vector<uint8_t>& encoded) const;

  BaselineJpeg jpeg_;
  HuffmanCache tables_;
  ScanReader reader_;
  std::vector<ScanPoint> points_;
};

}  // namespace stoker
