// Reads the headers of a progressive JPEG without libjpeg: those of the frame and of each scan.
//
// In a progressive file each scan has some coefficients of some components, and of them some bits
// ("successive approximation"): a coefficient's first scan has all bits from a lowest one up, each
// later scan has the next lower bit.
//
// The parser is as strict as that of baseline files (headers.h). It takes only files whose scans
// bring every bit of every coefficient exactly once, from the highest down; libjpeg smooths others
// across blocks, or warns about them. It also leaves tables of quantisation after the first scan to
// libjpeg, and files of more than kMaxScans scans.
//
// Owner: the reader of a file. Threads: one at a time. Memory: none.
#pragma once

#include <cstdint>
#include <span>

#include "decode/jpeg/headers.h"
#include "decode/jpeg/segment_parser.h"

namespace stoker {

struct ProgressiveJpeg : JpegFrame, JpegTables {};

class ProgressiveHeaders {
 public:
  ProgressiveHeaders() = default;
  ProgressiveHeaders(const ProgressiveHeaders&) = delete;
  ProgressiveHeaders& operator=(const ProgressiveHeaders&) = delete;

  // Encoders write about ten scans. JpegDecoder refuses files of more than 500.
  static constexpr int kMaxScans = 128;

  // Reads up to the first scan's data. Returns false if this decoder does not take the file.
  // `bytes` must live as long as this.
  bool open(std::span<const uint8_t> bytes);

  const ProgressiveJpeg& jpeg() const { return jpeg_; }
  // Returns the scan whose data come next. Its tables are those of jpeg() now.
  const ScanHeader& scan() const { return scan_; }

  // Reads on after the scan's data, which end at the offset `at`. Returns false if there is no
  // other scan; is_complete() then says whether the file is sound.
  bool next(size_t at);

  // Returns true if the end marker was found, and every bit of every coefficient is known.
  bool is_complete() const;

 private:
  static constexpr int8_t kUnknown = -1;

  bool take_scan();
  bool has_tables() const;
  bool is_next_bit(int component);

  ProgressiveJpeg jpeg_;
  SegmentParser parser_{JpegProcess::progressive, jpeg_, jpeg_};
  ScanHeader scan_;
  int scans_ = 0;
  bool has_end_ = false;
  int8_t lowest_[3][kBlockSize];  // the lowest known bit of each coefficient, or kUnknown
};

}  // namespace stoker
