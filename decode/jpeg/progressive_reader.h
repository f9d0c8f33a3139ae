// Reads the scans of a progressive JPEG and keeps the coefficients of one crop.
//
// libjpeg reads all scans to their ends, whatever the crop, and so does this reader: damage
// anywhere counts, and the same file has the same verdict with every crop. What a crop does not
// show is read past: blocks outside need no coefficients, and where an end-of-blocks code covers
// many blocks, they cost nothing.
//
// Owner: CropDecoder, reused for every image. Threads: one at a time. Errors: returns false as soon
// as libjpeg could see damage, or could read something in another way; libjpeg then decides.
// Memory: that of the largest scan is kept; the coefficients' until release_coefficients().
#pragma once

#include <cstdint>
#include <span>

#include "decode/image.h"
#include "decode/jpeg/crop_coefficients.h"
#include "decode/jpeg/progressive_headers.h"
#include "decode/jpeg/progressive_kernels.h"
#include "decode/jpeg/scan_segments.h"

namespace stoker {

class ProgressiveReader {
 public:
  ProgressiveReader() = default;
  ProgressiveReader(const ProgressiveReader&) = delete;
  ProgressiveReader& operator=(const ProgressiveReader&) = delete;

  // Reads the headers up to the first scan's data. `bytes` must live until read() returns.
  bool open(std::span<const uint8_t> bytes);
  const JpegFrame& jpeg() const { return headers_.jpeg(); }

  // Reads the whole file and keeps the coefficients of these MCUs, in at most `limit` bytes.
  // REQUIRES: open().
  bool read(const Box& mcus, int64_t limit);
  CropCoefficients& coefficients() { return coefficients_; }

  void release_coefficients() { coefficients_.release(); }
  void release_scan() { segments_.release(); }
  int64_t scan_bytes() const { return segments_.scratch_bytes(); }
  int64_t scratch_bytes() const;

 private:
  bool read_scan();
  bool build_tables();
  DcScan dc_scan(int row);
  bool read_dc();
  bool read_ac();
  bool is_at_end() const;
  template <class Decode>
  bool run(int count, const Decode& decode);
  template <class Decode>
  bool skip_to(int unit, const Decode& decode);
  bool next_segment();
  bool has_unread_bytes() const;
  int64_t bits_used() const;

  std::span<const uint8_t> bytes_;
  ProgressiveHeaders headers_;
  Box mcus_;
  CropCoefficients coefficients_;
  ScanSegments segments_;
  ScanTable tables_[3];
  // The current scan. Its units are MCUs, or blocks if it has one component.
  ProgressiveState state_;
  int unit_ = 0;          // the next one
  int units_across_ = 1;  // in a row
  int left_ = 0;          // units until the next restart marker
  size_t segment_ = 0;
};

}  // namespace stoker
