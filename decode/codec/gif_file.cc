#include <algorithm>
#include <cstring>
#include <string>

#include "decode/byte_reader.h"
#include "decode/codec/file_headers.h"

namespace stoker {
namespace {

constexpr size_t kScreen = 6, kFirstBlock = 13;
constexpr uint8_t kExtension = '!', kImage = ',', kTrailer = ';';
constexpr uint8_t kControl = 0xf9, kComment = 0xfe, kApplication = 0xff;
constexpr uint8_t kHasPalette = 0x80, kInterlaced = 0x40, kTransparent = 0x01;

// Reads blocks one after another.
class GifBlocks {
 public:
  explicit GifBlocks(std::span<const uint8_t> bytes) : bytes_(bytes), reader_(bytes, false) {}

  DecodeStatus read(GifLayout& layout) {
    layout.size = {reader_.u16(kScreen), reader_.u16(kScreen + 2)};
    at_ = kFirstBlock;
    for (int i = 0; i < 256; ++i) std::fill_n(layout.colours[i], 3, static_cast<uint8_t>(i));
    read_palette(reader_.u8(kScreen + 4), layout);
    for (;;) {
      const uint8_t kind = reader_.u8(at_);
      if (reader_.went_outside()) return cut_short(bytes_.size());
      ++at_;
      if (kind == kTrailer) {
        return {DecodeCode::corrupt, static_cast<int64_t>(at_), "a GIF without an image"};
      }
      if (kind == kImage) return read_image(layout);
      if (kind == kExtension) read_extension(layout);
    }
  }

 private:
  // A block's data; none is the end of a list of them.
  std::span<const uint8_t> block() {
    const size_t length = reader_.u8(at_);
    const std::span<const uint8_t> data = reader_.part(at_ + 1, length);
    at_ += 1 + length;
    return data;
  }
  void skip_blocks() {
    while (!block().empty()) {
    }
  }

  // A palette whose entry i is gray i is dropped, as by Pillow: so the image's own may give way to
  // that of the canvas.
  void read_palette(uint8_t flags, GifLayout& layout) {
    if ((flags & kHasPalette) == 0) return;
    const size_t colours = size_t{2} << (flags & 7);
    const std::span<const uint8_t> palette = reader_.part(at_, 3 * colours);
    at_ += 3 * colours;
    bool is_gray = true;
    for (size_t i = 0; i < palette.size(); ++i) is_gray &= palette[i] == i / 3;
    if (is_gray) return;
    std::memset(layout.colours, 0, sizeof layout.colours);
    std::memcpy(layout.colours, palette.data(), palette.size());
  }

  void read_extension(GifLayout& layout) {
    const uint8_t label = reader_.u8(at_++);
    std::span<const uint8_t> data = block();
    if (label == kComment) {
      while (!data.empty()) data = block();
      return;
    }
    if (label == kControl && !data.empty()) {
      is_control_bad_ |= data.size() < 3 || ((data[0] & kTransparent) != 0 && data.size() < 4);
      if (!is_control_bad_ && (data[0] & kTransparent) != 0) layout.background = data[3];
    }
    constexpr char kLoops[] = "NETSCAPE2.0";
    constexpr size_t kLoopsSize = sizeof kLoops - 1;
    if (label == kApplication && data.size() >= kLoopsSize &&
        std::memcmp(data.data(), kLoops, kLoopsSize) == 0) {
      block();
    }
    skip_blocks();
  }

  DecodeStatus read_image(GifLayout& layout) {
    constexpr int kMinBits = 1, kMaxBits = 8;
    layout.box = {reader_.u16(at_), reader_.u16(at_ + 2), reader_.u16(at_ + 4),
                  reader_.u16(at_ + 6)};
    const uint8_t flags = reader_.u8(at_ + 8);
    at_ += 9;
    layout.is_interlaced = (flags & kInterlaced) != 0;
    read_palette(flags, layout);
    layout.code_bits = reader_.u8(at_++);
    layout.data_at = at_;
    if (reader_.went_outside()) return cut_short(bytes_.size());
    layout.size = {std::max(layout.size.width, layout.box.x + layout.box.width),
                   std::max(layout.size.height, layout.box.y + layout.box.height)};
    if (is_control_bad_ || layout.box.width == 0 || layout.box.height == 0) {
      return {DecodeCode::corrupt, static_cast<int64_t>(at_), "a bad GIF image"};
    }
    if (layout.code_bits < kMinBits || layout.code_bits > kMaxBits) {
      return {DecodeCode::unsupported, static_cast<int64_t>(at_),
              "a GIF with codes of " + std::to_string(layout.code_bits) + " bits"};
    }
    return {};
  }

  const std::span<const uint8_t> bytes_;
  ByteReader reader_;
  size_t at_ = 0;
  bool is_control_bad_ = false;
};

}  // namespace

DecodeStatus read_gif_layout(std::span<const uint8_t> bytes, GifLayout& layout) {
  layout = {};
  return GifBlocks(bytes).read(layout);
}

DecodeStatus check_gif_blocks(std::span<const uint8_t> bytes, const GifLayout& layout) {
  for (size_t at = layout.data_at; at < bytes.size(); at += size_t{1} + bytes[at]) {
    if (bytes[at] == 0) return {};
  }
  return cut_short(bytes.size());
}

}  // namespace stoker
