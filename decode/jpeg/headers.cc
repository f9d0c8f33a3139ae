#include "decode/jpeg/headers.h"

#include <algorithm>
#include <cstring>

namespace stoker {

namespace {

constexpr int kMaxBlocksInMcu = 10;  // the standard's limit
constexpr int kMaxSide = 65500;      // libjpeg's limit

int big_endian(const uint8_t* p) { return p[0] << 8 | p[1]; }

// Reads one marker segment after another. Each method reads one kind and returns false if it is
// odd.
class Parser {
 public:
  Parser(std::span<const uint8_t> bytes, BaselineJpeg& jpeg) : bytes_(bytes), jpeg_(jpeg) {}

  bool run() {
    if (bytes_.size() < 4 || bytes_[0] != 0xFF || bytes_[1] != 0xD8) return false;
    for (size_t at = find_marker(bytes_, 2); at + 3 <= bytes_.size();
         at = find_marker(bytes_, at)) {
      const uint8_t marker = bytes_[at++];
      const size_t length = static_cast<size_t>(big_endian(bytes_.data() + at));
      if (length < 2 || length > bytes_.size() - at) return false;
      if (!segment(marker, bytes_.subspan(at + 2, length - 2))) return false;
      at += length;
      if (marker == 0xDA) {
        jpeg_.scan_begin = at;
        return finish();
      }
    }
    return false;
  }

 private:
  using Bytes = std::span<const uint8_t>;

  bool segment(uint8_t marker, Bytes data) {
    if (marker == 0xC0 || marker == 0xC1) return frame(data);
    if (marker == 0xC4) return huffman_tables(data);
    if (marker == 0xDA) return scan(data);
    if (marker == 0xDB) return quant_tables(data);
    if (marker == 0xDD) return restart_interval(data);
    if (marker == 0xE0) return jfif(data);
    if (marker == 0xEE) return adobe(data);
    return (marker > 0xE0 && marker <= 0xEF) || marker == 0xFE;  // APPn, COM
  }

  bool frame(Bytes data) {
    if (has_frame_ || data.size() < 6 || data[0] != 8) return false;
    has_frame_ = true;
    jpeg_.size = {big_endian(&data[3]), big_endian(&data[1])};
    const int count = data[5];
    if (count != 1 && count != 3) return false;
    if (data.size() != 6 + 3 * static_cast<size_t>(count)) return false;
    jpeg_.component_count = count;
    for (int c = 0; c < count; ++c) {
      const uint8_t* from = &data[6 + 3 * static_cast<size_t>(c)];
      JpegComponent& to = jpeg_.components[c];
      to.id = from[0];
      to.across = from[1] >> 4;
      to.down = from[1] & 15;
      to.quant = from[2];
      if (to.quant > 3 || to.across < 1 || to.across > 4 || to.down < 1 || to.down > 4) {
        return false;
      }
      for (int other = 0; other < c; ++other) {
        if (jpeg_.components[other].id == to.id) return false;
      }
    }
    return jpeg_.size.width > 0 && jpeg_.size.height > 0 && jpeg_.size.width <= kMaxSide &&
           jpeg_.size.height <= kMaxSide;
  }

  bool huffman_tables(Bytes data) {
    while (!data.empty()) {
      if (data.size() < 17) return false;
      const int kind = data[0] >> 4, index = data[0] & 15;
      if (kind > 1 || index > 3) return false;
      HuffmanSpec spec{&data[1], data.data() + 17, 0};
      for (int i = 0; i < 16; ++i) spec.value_count += spec.counts[i];
      const size_t used = 17 + static_cast<size_t>(spec.value_count);
      if (spec.value_count > 256 || used > data.size()) return false;
      (kind == 0 ? jpeg_.dc : jpeg_.ac)[index] = spec;
      data = data.subspan(used);
    }
    return true;
  }

  bool quant_tables(Bytes data) {
    while (!data.empty()) {
      const int wide = data[0] >> 4, index = data[0] & 15;
      const size_t used = wide != 0 ? 129 : 65;
      if (wide > 1 || index > 3 || used > data.size()) return false;
      for (int k = 0; k < kBlockSize; ++k) {
        const int value = wide != 0 ? big_endian(&data[1 + 2 * static_cast<size_t>(k)])
                                    : data[1 + static_cast<size_t>(k)];
        jpeg_.quant[index][kZigzag[k]] = static_cast<int16_t>(value);
      }
      jpeg_.has_quant[index] = true;
      data = data.subspan(used);
    }
    return true;
  }

  bool restart_interval(Bytes data) {
    if (data.size() != 2) return false;
    jpeg_.restart_interval = big_endian(data.data());
    return true;
  }

  bool jfif(Bytes data) {
    if (data.size() >= 14 && std::memcmp(data.data(), "JFIF\0", 5) == 0) {
      says_ycc_ = true;
      return data[5] == 1;  // libjpeg warns about another major version
    }
    return true;
  }

  bool adobe(Bytes data) {
    if (data.size() >= 12 && std::memcmp(data.data(), "Adobe", 5) == 0) {
      if (data[11] != 1) is_odd_colour_ = true;
      says_ycc_ = true;
    }
    return true;
  }

  bool scan(Bytes data) {
    const size_t count = static_cast<size_t>(jpeg_.component_count);
    if (!has_frame_ || data.size() != 4 + 2 * count || data[0] != count) return false;
    for (size_t c = 0; c < count; ++c) {
      JpegComponent& component = jpeg_.components[c];
      if (data[1 + 2 * c] != component.id) return false;
      component.dc = data[2 + 2 * c] >> 4;
      component.ac = data[2 + 2 * c] & 15;
      if (component.dc > 3 || component.ac > 3) return false;
    }
    const uint8_t* spectral = &data[1 + 2 * count];
    return spectral[0] == 0 && spectral[1] == 63 && spectral[2] == 0;
  }

  // Checks what only all headers together show.
  bool finish() {
    JpegComponent* const components = jpeg_.components;
    const int count = jpeg_.component_count;
    // In a scan of one component an MCU is one block, whatever the factors.
    if (count == 1) {
      jpeg_.rows_together = components[0].down;
      components[0].across = components[0].down = 1;
    } else {
      const bool usual_ids =
          components[0].id == 1 && components[1].id == 2 && components[2].id == 3;
      if (is_odd_colour_ || !(says_ycc_ || usual_ids)) return false;
    }
    int blocks = 0;
    for (int c = 0; c < count; ++c) {
      jpeg_.max_across = std::max(jpeg_.max_across, components[c].across);
      jpeg_.max_down = std::max(jpeg_.max_down, components[c].down);
      blocks += components[c].across * components[c].down;
    }
    if (blocks > kMaxBlocksInMcu) return false;
    jpeg_.mcus_across = (jpeg_.size.width + jpeg_.mcu_width() - 1) / jpeg_.mcu_width();
    jpeg_.mcus_down = (jpeg_.size.height + jpeg_.mcu_height() - 1) / jpeg_.mcu_height();
    for (int c = 0; c < count; ++c) {
      if (!finish(components[c])) return false;
    }
    return true;
  }

  bool finish(JpegComponent& component) const {
    if (!jpeg_.has_quant[component.quant] || jpeg_.dc[component.dc].counts == nullptr ||
        jpeg_.ac[component.ac].counts == nullptr || jpeg_.max_across % component.across != 0 ||
        jpeg_.max_down % component.down != 0) {
      return false;
    }
    const auto scaled = [](int samples, int factor, int max_factor) {
      return (samples * factor + max_factor - 1) / max_factor;
    };
    component.size = {scaled(jpeg_.size.width, component.across, jpeg_.max_across),
                      scaled(jpeg_.size.height, component.down, jpeg_.max_down)};
    return true;
  }

  Bytes bytes_;
  BaselineJpeg& jpeg_;
  bool has_frame_ = false;
  bool says_ycc_ = false;
  bool is_odd_colour_ = false;
};

}  // namespace

size_t find_marker(std::span<const uint8_t> bytes, size_t at) {
  for (; at + 1 < bytes.size(); ++at) {
    if (bytes[at] == 0xFF && bytes[at + 1] != 0xFF && bytes[at + 1] != 0) return at + 1;
  }
  return bytes.size();
}

bool parse_baseline(std::span<const uint8_t> bytes, BaselineJpeg& jpeg) {
  jpeg = {};
  return Parser(bytes, jpeg).run();
}

}  // namespace stoker
