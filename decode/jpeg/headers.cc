#include "decode/jpeg/headers.h"

#include "decode/jpeg/segment_parser.h"

namespace stoker {
namespace {

bool is_defined(const HuffmanSpec* tables, int index) {
  return index < 4 && tables[index].counts != nullptr;
}

// Returns false unless the scan has all coefficients of all components.
bool take_scan(const ScanHeader& scan, BaselineJpeg& jpeg) {
  if (scan.count != jpeg.component_count || scan.first != 0 || scan.last != kBlockSize - 1 ||
      scan.high != 0 || scan.low != 0) {
    return false;
  }
  for (int c = 0; c < scan.count; ++c) {
    if (!is_defined(jpeg.dc, scan.dc[c]) || !is_defined(jpeg.ac, scan.ac[c])) return false;
    jpeg.components[c].dc = scan.dc[c];
    jpeg.components[c].ac = scan.ac[c];
  }
  jpeg.scan_begin = scan.begin;
  return true;
}

}  // namespace

size_t find_marker(std::span<const uint8_t> bytes, size_t at) {
  for (; at + 1 < bytes.size(); ++at) {
    if (bytes[at] == 0xFF && bytes[at + 1] != 0xFF && bytes[at + 1] != 0) return at + 1;
  }
  return bytes.size();
}

bool parse_baseline(std::span<const uint8_t> bytes, BaselineJpeg& jpeg) {
  jpeg = {};
  ScanHeader scan;
  SegmentParser parser(JpegProcess::sequential, jpeg, jpeg);
  parser.open(bytes);
  return parser.next_scan(2, scan) == SegmentParser::Found::scan && take_scan(scan, jpeg);
}

}  // namespace stoker
