// Reads the marker segments of a JPEG file, one after another, up to the header of each scan.
// Internal to headers.cc and progressive_headers.cc.
//
// It is strict: it reports as odd whatever libjpeg would call an error or a warning, and much that
// is only unusual. Between the segments before the first scan it skips stray bytes, as libjpeg
// does; afterwards stray bytes are odd.
//
// Owner: a parser of headers. Threads: one at a time. Memory: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/jpeg/headers.h"

namespace stoker {

enum class JpegProcess : uint8_t { sequential, progressive };

struct ScanHeader {
  int count = 0;           // components
  int components[3] = {};  // their indices in the frame, ascending
  int dc[3] = {};          // the indices of their Huffman tables as in the file, 0..15
  int ac[3] = {};
  int first = 0;  // coefficients [first, last], in the order of the file
  int last = 0;
  int high = 0;      // the lowest bit that earlier scans had; 0 = none
  int low = 0;       // the lowest bit that this scan has
  size_t begin = 0;  // the offset of the scan's data
};

class SegmentParser {
 public:
  enum class Found : uint8_t { scan, end, odd };

  // `frame` and `tables` must live as long as the parser, and be empty when a file is opened.
  SegmentParser(JpegProcess process, JpegFrame& frame, JpegTables& tables)
      : process_(process), frame_(frame), tables_(tables) {}

  // Prepares for a file, whose bytes must live as long as it is read.
  void open(std::span<const uint8_t> bytes) {
    bytes_ = bytes;
    has_frame_ = has_scan_ = says_ycc_ = is_odd_colour_ = false;
  }

  // Reads on from `at` (2 for the first scan, the end of its data for a later one) to the next
  // scan's header or to the end marker, and adds to `frame` and `tables` what is defined there.
  // The frame is complete when the first scan was found.
  Found next_scan(size_t at, ScanHeader& scan);

 private:
  using Bytes = std::span<const uint8_t>;

  size_t marker_from(size_t at) const;
  bool segment(uint8_t marker, Bytes data, ScanHeader& scan);
  bool frame(Bytes data);
  bool huffman_tables(Bytes data);
  bool quant_tables(Bytes data);
  bool restart_interval(Bytes data);
  bool jfif(Bytes data);
  bool adobe(Bytes data);
  bool scan(Bytes data, ScanHeader& scan) const;
  bool finish_frame();
  bool finish(JpegComponent& component) const;

  const JpegProcess process_;
  JpegFrame& frame_;
  JpegTables& tables_;
  Bytes bytes_;
  bool has_frame_ = false;
  bool has_scan_ = false;
  bool says_ycc_ = false;
  bool is_odd_colour_ = false;
};

}  // namespace stoker
