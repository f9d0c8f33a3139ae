#include "decode/jpeg/progressive_headers.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr int kMaxLow = 13;  // libjpeg's limit

}  // namespace

bool ProgressiveHeaders::open(std::span<const uint8_t> bytes) {
  jpeg_ = {};
  parser_.open(bytes);
  scans_ = 0;
  has_end_ = false;
  for (auto& component : lowest_) std::fill(std::begin(component), std::end(component), kUnknown);
  return next(2);
}

bool ProgressiveHeaders::next(size_t at) {
  const SegmentParser::Found found = parser_.next_scan(at, scan_);
  has_end_ = found == SegmentParser::Found::end;
  return found == SegmentParser::Found::scan && ++scans_ <= kMaxScans && take_scan();
}

bool ProgressiveHeaders::take_scan() {
  const bool is_dc = scan_.first == 0;
  if (is_dc ? scan_.last != 0 : scan_.count != 1) return false;
  if (scan_.first > scan_.last || scan_.last >= kBlockSize || scan_.low > kMaxLow) return false;
  if (!has_tables()) return false;
  for (int i = 0; i < scan_.count; ++i) {
    if (!is_next_bit(scan_.components[i])) return false;
  }
  return true;
}

// A scan that refines DC coefficients has no Huffman codes.
bool ProgressiveHeaders::has_tables() const {
  const bool is_dc = scan_.first == 0;
  if (is_dc && scan_.high != 0) return true;
  for (int i = 0; i < scan_.count; ++i) {
    const int index = is_dc ? scan_.dc[i] : scan_.ac[i];
    if (index > 3 || (is_dc ? jpeg_.dc : jpeg_.ac)[index].counts == nullptr) return false;
  }
  return true;
}

// Returns true if the scan has what comes next of all its coefficients of a component, and notes
// that it is known.
bool ProgressiveHeaders::is_next_bit(int component) {
  int8_t* const lowest = lowest_[component];
  if (scan_.first > 0 && lowest[0] == kUnknown) return false;
  if (scan_.high != 0 && scan_.low != scan_.high - 1) return false;
  for (int k = scan_.first; k <= scan_.last; ++k) {
    if (lowest[k] != (scan_.high == 0 ? kUnknown : scan_.high)) return false;
    lowest[k] = static_cast<int8_t>(scan_.low);
  }
  return true;
}

bool ProgressiveHeaders::is_complete() const {
  const auto is_known = [](int8_t bit) { return bit == 0; };
  return has_end_ && std::all_of(lowest_, lowest_ + jpeg_.component_count, [&](const auto& bits) {
           return std::all_of(std::begin(bits), std::end(bits), is_known);
         });
}

}  // namespace stoker
