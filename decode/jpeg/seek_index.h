// Places inside a JPEG's entropy-coded data at which a decoder can begin: one per row of MCUs, or
// one per 8 MCUs as well. With it CropDecoder reads only what a crop shows.
//
// Every block of the file that is in memory must have its sum. So where a file is there as a whole,
// the rows of the index are known to be good, and rows that are not decoded cannot hide damage.
// Where only pieces were read (crop_bytes.h), that is known of these pieces; whoever reads them
// sees by the file's size and time that the rest did not change. Sums and seal find accidents, not
// forgery; but whatever an index contains, no memory outside the file is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/file_pieces.h"
#include "decode/jpeg/headers.h"
#include "decode/jpeg/scan_reader.h"

namespace stoker {

// An index is a short sequence of bytes that is kept beside the file (pipeline/seek_index/file.h):
//
//   u8 step      MCUs between two places of a row; 0 = only where rows begin
//   u8 x 5       number of bits of the values below: bits from the scan's start, bits from the
//                row's start, the DC predictors of the three components
//   u16 rows     rows of MCUs that were read without damage, from the first one on
//   u32 x 2      bytes of the file, and where its scan begins
//   u16 x 2      width and height in pixels
//   u8 x 4       an MCU's width and height in pixels, the EXIF orientation, 0
//   bits         per row of MCUs, and for the row behind these if there is one: its place (bits
//                from the scan's start, predictors), then those of its other groups (bits from the
//                row's start, predictors); from the lowest bit up
//   u32 sums     of each block of kSeekBlock bytes of the file: the lower half of its XXH3
//   u64 seal     XXH3 of everything above
//
// Distances count bits of the file, stuffing and markers included, so that nothing before a place
// has to be read. Predictors are two's complement. All little-endian.
//
// A whole index (its rows are all of the file's) is made only of a file that decodes cleanly from
// its first MCU to its last. An index of fewer rows is what a decoder passed on its way to the last
// row of a crop: a crop that reaches further down is read from its last place on, as far as without
// an index.

// Larger images get no index: it would not be small. With this limit it has at most 1.5 MiB.
inline constexpr int kMaxSeekPlaces = 1 << 17;
// Larger files get none, either: their headers are longer than any scan.
inline constexpr size_t kMaxIndexedFile = 2 * kMaxScanBytes;

// The bytes of a file that share a sum, but for the last ones. Pieces of a file are whole blocks.
inline constexpr size_t kSeekBlock = size_t{8} << 10;

// The most bytes of an index with a place per row: a JPEG has at most 65,535 rows of samples.
inline constexpr int kMaxRowIndexBytes =
    (8192 * (28 + 3 * 22) + 7) / 8 + 32 + static_cast<int>(4 * (kMaxIndexedFile / kSeekBlock));

// MCUs between two places of a row.
enum class SeekStep : uint8_t { row = 0, eight = 8 };

// Returns the rows of MCUs that `encoded` says it has, before anything is checked; 0 if it is no
// index.
int claimed_seek_rows(std::span<const uint8_t> encoded);

// The facts about its file that an index holds.
struct IndexedFile {
  size_t bytes = 0;
  size_t scan_begin = 0;  // the offset of the entropy-coded data
  Size size;              // in pixels, as stored
  Size mcu;               // an MCU's pixels
  int orientation = 1;    // by EXIF
  int mcus_across() const { return (size.width + mcu.width - 1) / mcu.width; }
  int mcus_down() const { return (size.height + mcu.height - 1) / mcu.height; }
};

// Reads places from an index: a view of its bytes. Threads: const calls from any.
class SeekIndex {
 public:
  // Returns false if it is damaged. `encoded` must live as long as this.
  bool open(std::span<const uint8_t> encoded);
  // Returns whether it is of this file, as far as the file is there. REQUIRES: open().
  bool is_of(const FilePieces& file, const BaselineJpeg& jpeg) const;

  const IndexedFile& file() const { return file_; }
  // MCUs between the places of a row; mcus_across if there is only one.
  int step() const { return step_; }
  int groups() const { return groups_; }  // places per row
  int rows() const { return rows_; }      // of MCUs that were read without damage
  // Finds where the group's first MCU begins; `group` == groups() is the next row's first one. The
  // row behind rows() has a place, too, if the file has such a row. Returns false if there is none,
  // or if the index is damaged.
  bool find(int row, int group, ScanPoint& point) const;

 private:
  uint32_t take(size_t& bit, int count) const;
  bool has_sums_of(std::span<const uint8_t> run, size_t at) const;

  std::span<const uint8_t> encoded_;
  IndexedFile file_;
  int rows_ = 0, places_down_ = 0, step_ = 0, groups_ = 0;
  int scan_bits_ = 0, row_bits_ = 0, dc_bits_[3] = {};
  size_t sums_at_ = 0;
};

// Notes the places that a reader passes, and makes an index of them. Owner: one per thread, reused;
// keeps its scratch. Threads: one at a time.
class SeekRecorder {
 public:
  // Starts a file of which nothing is known: the first place is that of its first MCU. Returns
  // false if the file or the number of places is too large for an index. Both must live as long as
  // places are added.
  bool begin(std::span<const uint8_t> bytes, const BaselineJpeg& jpeg, SeekStep step);
  // Starts with the places of `index`, which has one per row: the reader was made to enter at its
  // last one.
  bool begin(std::span<const uint8_t> bytes, const BaselineJpeg& jpeg, const SeekIndex& index);
  // Adds the place where a reader is. REQUIRES: places come in order.
  void add(const ScanPoint& place) { points_.push_back(place); }
  // Replaces `encoded` by the index of these places. `rows`: how many rows were read without
  // damage. REQUIRES: all places of these rows and of the row behind them were added.
  void finish(int rows, std::vector<uint8_t>& encoded);

  int places() const { return static_cast<int>(points_.size()); }
  int64_t scratch_bytes() const {
    return static_cast<int64_t>(points_.capacity() * sizeof(points_[0]));
  }

 private:
  const BaselineJpeg* jpeg_ = nullptr;
  std::span<const uint8_t> bytes_;
  SeekStep step_ = SeekStep::row;
  int groups_ = 1;
  std::vector<ScanPoint> points_;
};

// Makes indexes of whole files. Owner: one per thread, reused; keeps its scratch. Threads: one at a
// time.
class SeekIndexBuilder {
 public:
  // Reads the whole scan. Returns false if CropDecoder does not take the file, or if it is too
  // large or damaged; ImageDecoder reports which. `encoded` is replaced.
  bool build(std::span<const uint8_t> bytes, SeekStep step, std::vector<uint8_t>& encoded);

 private:
  BaselineJpeg jpeg_;
  HuffmanCache tables_;
  ScanReader reader_;
  SeekRecorder recorder_;
};

}  // namespace stoker
