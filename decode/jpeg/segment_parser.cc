#include "decode/jpeg/segment_parser.h"

#include <algorithm>
#include <cstring>

namespace stoker {
namespace {

constexpr int kMaxBlocksInMcu = 10;  // the standard's limit
constexpr int kMaxSide = 65500;      // libjpeg's limit

constexpr uint8_t kEndOfImage = 0xD9, kStartOfScan = 0xDA;

int big_endian(const uint8_t* p) { return p[0] << 8 | p[1]; }

}  // namespace

// Returns the place of the next marker's code, bytes_.size() if there is none. Bytes of fill before
// a marker are no stray bytes.
size_t SegmentParser::marker_from(size_t at) const {
  if (!has_scan_) return find_marker(bytes_, at);
  const size_t found = find_marker(bytes_, at);
  const auto is_fill = [](uint8_t byte) { return byte == 0xFF; };
  const bool is_near =
      found > at && found < bytes_.size() && std::all_of(&bytes_[at], &bytes_[found], is_fill);
  return is_near ? found : bytes_.size();
}

SegmentParser::Found SegmentParser::next_scan(size_t at, ScanHeader& scan) {
  if (!has_scan_ && (bytes_.size() < 4 || bytes_[0] != 0xFF || bytes_[1] != 0xD8)) {
    return Found::odd;
  }
  for (at = marker_from(at); at < bytes_.size(); at = marker_from(at)) {
    const uint8_t marker = bytes_[at++];
    if (marker == kEndOfImage) return has_scan_ ? Found::end : Found::odd;
    if (at + 2 > bytes_.size()) return Found::odd;
    const size_t length = static_cast<size_t>(big_endian(bytes_.data() + at));
    if (length < 2 || length > bytes_.size() - at) return Found::odd;
    if (!segment(marker, bytes_.subspan(at + 2, length - 2), scan)) return Found::odd;
    at += length;
    if (marker != kStartOfScan) continue;
    scan.begin = at;
    const bool is_sound = has_scan_ || finish_frame();
    has_scan_ = true;
    return is_sound ? Found::scan : Found::odd;
  }
  return Found::odd;
}

// Each of the following methods reads one kind of segment and returns false if it is odd.

bool SegmentParser::segment(uint8_t marker, Bytes data, ScanHeader& header) {
  const bool is_sequential = process_ == JpegProcess::sequential;
  if (is_sequential ? marker == 0xC0 || marker == 0xC1 : marker == 0xC2) return frame(data);
  if (marker == 0xC4) return huffman_tables(data);
  if (marker == kStartOfScan) return scan(data, header);
  if (marker == 0xDB) return quant_tables(data);
  if (marker == 0xDD) return restart_interval(data);
  if (marker == 0xE0) return jfif(data);
  if (marker == 0xEE) return adobe(data);
  return (marker > 0xE0 && marker <= 0xEF) || marker == 0xFE;  // APPn, COM
}

bool SegmentParser::frame(Bytes data) {
  if (has_frame_ || data.size() < 6 || data[0] != 8) return false;
  has_frame_ = true;
  frame_.size = {big_endian(&data[3]), big_endian(&data[1])};
  const int count = data[5];
  if (count != 1 && count != 3) return false;
  if (data.size() != 6 + 3 * static_cast<size_t>(count)) return false;
  frame_.component_count = count;
  for (int c = 0; c < count; ++c) {
    const uint8_t* from = &data[6 + 3 * static_cast<size_t>(c)];
    JpegComponent& to = frame_.components[c];
    to.id = from[0];
    to.across = from[1] >> 4;
    to.down = from[1] & 15;
    to.quant = from[2];
    if (to.quant > 3 || to.across < 1 || to.across > 4 || to.down < 1 || to.down > 4) {
      return false;
    }
    for (int other = 0; other < c; ++other) {
      if (frame_.components[other].id == to.id) return false;
    }
  }
  return frame_.size.width > 0 && frame_.size.height > 0 && frame_.size.width <= kMaxSide &&
         frame_.size.height <= kMaxSide;
}

bool SegmentParser::huffman_tables(Bytes data) {
  while (!data.empty()) {
    if (data.size() < 17) return false;
    const int kind = data[0] >> 4, index = data[0] & 15;
    if (kind > 1 || index > 3) return false;
    HuffmanSpec spec{&data[1], data.data() + 17, 0};
    for (int i = 0; i < 16; ++i) spec.value_count += spec.counts[i];
    const size_t used = 17 + static_cast<size_t>(spec.value_count);
    if (spec.value_count > 256 || used > data.size()) return false;
    (kind == 0 ? tables_.dc : tables_.ac)[index] = spec;
    data = data.subspan(used);
  }
  return true;
}

// libjpeg uses a component's table as it is at the component's first scan. Encoders define all
// tables before the first scan; later ones are odd.
bool SegmentParser::quant_tables(Bytes data) {
  if (has_scan_) return false;
  while (!data.empty()) {
    const int wide = data[0] >> 4, index = data[0] & 15;
    const size_t used = wide != 0 ? 129 : 65;
    if (wide > 1 || index > 3 || used > data.size()) return false;
    for (int k = 0; k < kBlockSize; ++k) {
      const int value = wide != 0 ? big_endian(&data[1 + 2 * static_cast<size_t>(k)])
                                  : data[1 + static_cast<size_t>(k)];
      frame_.quant[index][kZigzag[k]] = static_cast<int16_t>(value);
    }
    tables_.has_quant[index] = true;
    data = data.subspan(used);
  }
  return true;
}

bool SegmentParser::restart_interval(Bytes data) {
  if (data.size() != 2) return false;
  tables_.restart_interval = big_endian(data.data());
  return true;
}

bool SegmentParser::jfif(Bytes data) {
  if (data.size() >= 14 && std::memcmp(data.data(), "JFIF\0", 5) == 0) {
    says_ycc_ = true;
    return data[5] == 1;  // libjpeg warns about another major version
  }
  return true;
}

bool SegmentParser::adobe(Bytes data) {
  if (data.size() >= 12 && std::memcmp(data.data(), "Adobe", 5) == 0) {
    if (data[11] != 1) is_odd_colour_ = true;
    says_ycc_ = true;
  }
  return true;
}

// Components come in the frame's order.
bool SegmentParser::scan(Bytes data, ScanHeader& scan) const {
  if (!has_frame_ || data.empty()) return false;
  scan.count = data[0];
  const size_t count = data[0];
  if (count < 1 || scan.count > frame_.component_count || data.size() != 4 + 2 * count) {
    return false;
  }
  int next = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = &data[1 + 2 * i];
    while (next < frame_.component_count && frame_.components[next].id != from[0]) ++next;
    if (next == frame_.component_count) return false;
    scan.components[i] = next++;
    scan.dc[i] = from[1] >> 4;
    scan.ac[i] = from[1] & 15;
  }
  const uint8_t* which = &data[1 + 2 * count];
  scan.first = which[0];
  scan.last = which[1];
  scan.high = which[2] >> 4;
  scan.low = which[2] & 15;
  return true;
}

// Checks what only all segments before the first scan together show.
bool SegmentParser::finish_frame() {
  JpegComponent* const components = frame_.components;
  const int count = frame_.component_count;
  // In a scan of one component an MCU is one block, whatever the factors.
  if (count == 1) {
    frame_.rows_together = components[0].down;
    components[0].across = components[0].down = 1;
  } else {
    const bool usual_ids = components[0].id == 1 && components[1].id == 2 && components[2].id == 3;
    if (is_odd_colour_ || !(says_ycc_ || usual_ids)) return false;
  }
  int blocks = 0;
  for (int c = 0; c < count; ++c) {
    frame_.max_across = std::max(frame_.max_across, components[c].across);
    frame_.max_down = std::max(frame_.max_down, components[c].down);
    blocks += components[c].across * components[c].down;
  }
  if (blocks > kMaxBlocksInMcu) return false;
  frame_.mcus_across = (frame_.size.width + frame_.mcu_width() - 1) / frame_.mcu_width();
  frame_.mcus_down = (frame_.size.height + frame_.mcu_height() - 1) / frame_.mcu_height();
  for (int c = 0; c < count; ++c) {
    if (!finish(components[c])) return false;
  }
  return true;
}

bool SegmentParser::finish(JpegComponent& component) const {
  if (!tables_.has_quant[component.quant] || frame_.max_across % component.across != 0 ||
      frame_.max_down % component.down != 0) {
    return false;
  }
  const auto scaled = [](int samples, int factor, int max_factor) {
    return (samples * factor + max_factor - 1) / max_factor;
  };
  component.size = {scaled(frame_.size.width, component.across, frame_.max_across),
                    scaled(frame_.size.height, component.down, frame_.max_down)};
  return true;
}

}  // namespace stoker
