#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "decode/byte_reader.h"
#include "decode/codec/file_headers.h"
#include "decode/codec/readers.h"
#include "decode/scratch_vector.h"

namespace stoker {
namespace {

constexpr uint32_t kRaw = 0, kRuns8 = 1, kRuns4 = 2, kBitFields = 3;
constexpr uint32_t kFileHeader = 14, kOldHeader = 12;

DecodeStatus unsupported_bmp(const BmpLayout& layout, uint32_t compression) {
  return {DecodeCode::unsupported, 0,
          "a BMP of " + std::to_string(layout.bits) + " bits, compression " +
              std::to_string(compression)};
}

bool is_known_header(uint32_t bytes) {
  constexpr uint32_t kKnown[] = {kOldHeader, 40, 52, 56, 64, 108, 124};
  return std::find(std::begin(kKnown), std::end(kKnown), bytes) != std::end(kKnown);
}

// Returns which byte of a pixel a mask selects; -1 if the mask is not one whole byte.
int byte_of_mask(uint32_t mask) {
  for (int byte = 0; byte < 4; ++byte) {
    if (mask == 0xffu << 8 * byte) return byte;
  }
  return -1;
}

// Reads the masks, which follow the header of 40 bytes or continue a longer one.
bool read_bit_fields(ByteReader& reader, BmpLayout& layout) {
  const uint32_t masks[] = {reader.u32(54), reader.u32(58), reader.u32(62)};
  if (layout.bits == 16) {
    layout.green_bits = masks[1] == 0x7e0 ? 6 : 5;
    return masks[2] == 0x1f &&
           (layout.green_bits == 6 ? masks[0] == 0xf800 : masks[0] == 0x7c00 && masks[1] == 0x3e0);
  }
  if (layout.bits == 32 && masks[0] == 0 && masks[1] == 0 && masks[2] == 0) return true;
  layout.red = byte_of_mask(masks[0]);
  layout.green = byte_of_mask(masks[1]);
  layout.blue = byte_of_mask(masks[2]);
  const bool is_usual = layout.red == 2 && layout.green == 1 && layout.blue == 0;
  return layout.bits == 32 ? std::min({layout.red, layout.green, layout.blue}) >= 0 &&
                                 layout.red != layout.green && layout.green != layout.blue &&
                                 layout.red != layout.blue
                           : layout.bits == 24 && is_usual;
}

// Reads colours of blue, green, red and perhaps one more byte. Returns false if Pillow would
// misread the pixels.
bool read_bmp_palette(ByteReader& reader, int64_t at, int64_t colours, int64_t colour_bytes,
                      BmpLayout& layout) {
  bool is_gray = true;
  for (int64_t i = 0; i < colours; ++i) {
    uint8_t rgb[3];
    const auto from = static_cast<size_t>(at + i * colour_bytes);
    for (size_t c = 0; c < 3; ++c) rgb[c] = reader.u8(from + 2 - c);
    const auto gray = static_cast<uint8_t>(colours == 2 ? i * 255 : i);
    is_gray &= rgb[0] == gray && rgb[1] == gray && rgb[2] == gray;
    if (i < 256) std::copy_n(rgb, 3, layout.palette[i]);
  }
  if (!is_gray) return true;
  // Pillow drops a gray palette, and reads the pixels as 1 or 8 bits each.
  for (int64_t i = colours; i < 256; ++i) {
    std::fill_n(layout.palette[i], 3, static_cast<uint8_t>(colours <= 2 ? 255 : i));
  }
  return layout.bits == (colours <= 2 ? 1 : 8);
}

// Finds the palette and the pixels. As in Pillow, if the offset of the pixels is that of the
// palette, the pixels come after the palette.
DecodeStatus find_palette(ByteReader& reader, uint32_t header_bytes, BmpLayout& layout) {
  constexpr int64_t kMaxColours = 65536;
  const bool is_old = header_bytes == kOldHeader;
  const int64_t said = is_old ? 0 : reader.u32(46);
  const int64_t colours = said == 0 ? int64_t{1} << layout.bits : said;
  const int64_t colour_bytes = is_old ? 3 : 4;
  const int64_t at = kFileHeader + header_bytes;
  if (colours > kMaxColours) return {DecodeCode::corrupt, 46, "a bad BMP palette"};
  if (layout.pixels_at == 0) layout.pixels_at = at + colours * colour_bytes;
  if (layout.pixels_at == at) layout.pixels_at += 4 * colours;
  if (read_bmp_palette(reader, at, colours, colour_bytes, layout)) return {};
  return {DecodeCode::unsupported, at,
          "a BMP of " + std::to_string(layout.bits) + " bits with " + std::to_string(colours) +
              " shades of gray"};
}

// The palette's indexes of a picture with run-length coding, row by row as the file has them. The
// commands are read as Pillow reads them.
class BmpRuns {
 public:
  BmpRuns(std::span<const uint8_t> bytes, const BmpLayout& layout)
      : bytes_(bytes),
        at_(static_cast<size_t>(layout.pixels_at)),
        width_(static_cast<size_t>(layout.size.width)),
        bits_(layout.bits),
        indexes_(width_ * static_cast<size_t>(layout.size.height)) {}

  // Returns false if the commands end before the picture does.
  bool read() {
    while (out_ < indexes_.size() && at_ + 2 <= bytes_.size()) {
      const uint8_t count = bytes_[at_], value = bytes_[at_ + 1];
      at_ += 2;
      if (count > 0) {
        repeat(count, value);
      } else if (value == 0) {
        out_ = std::min((out_ + width_ - 1) / width_ * width_, indexes_.size());
        x_ = 0;
      } else if (value == 1 || !(value == 2 ? skip() : copy(value))) {
        break;
      }
    }
    return out_ == indexes_.size();
  }
  bool reached_the_end() const { return at_ + 2 > bytes_.size(); }
  const uint8_t* row(int y) const { return indexes_.data() + static_cast<size_t>(y) * width_; }

 private:
  // The indexes of a byte: one of 8 bits, or two of 4.
  uint8_t index(uint8_t byte, size_t i) const {
    if (bits_ == 8) return byte;
    return static_cast<uint8_t>(i % 2 == 0 ? byte >> 4 : byte & 15);
  }
  void repeat(size_t count, uint8_t byte) {
    count = std::min({count, width_ - std::min(x_, width_), indexes_.size() - out_});
    for (size_t i = 0; i < count; ++i) indexes_[out_++] = index(byte, i);
    x_ += count;
  }
  bool skip() {
    if (at_ + 2 > bytes_.size()) return false;
    const size_t pixels = bytes_[at_] + bytes_[at_ + 1] * width_;
    at_ += 2;
    out_ += std::min(pixels, indexes_.size() - out_);
    x_ = out_ % width_;
    return true;
  }
  // Indexes as they are, up to an even place in the file.
  bool copy(size_t count) {
    const size_t pixels = std::min(count, indexes_.size() - out_);
    const size_t in_a_byte = bits_ == 8 ? 1 : 2;
    const size_t needed = (pixels + in_a_byte - 1) / in_a_byte;
    if (needed > bytes_.size() - at_) return false;
    for (size_t i = 0; i < pixels; ++i) indexes_[out_++] = index(bytes_[at_ + i / in_a_byte], i);
    at_ += needed;
    at_ += at_ % 2;
    x_ += count;
    return at_ <= bytes_.size();
  }

  const std::span<const uint8_t> bytes_;
  size_t at_;
  const size_t width_;
  const int bits_;
  ScratchVector<uint8_t> indexes_;
  size_t out_ = 0;  // indexes so far
  size_t x_ = 0;    // in the row, as the commands count
};

// A pixel of 16 bits, from the highest down: red, green and blue.
void unpack_16(const uint8_t* from, int green_bits, uint8_t* to) {
  const int value = from[0] | from[1] << 8;
  const int green_most = (1 << green_bits) - 1;
  to[0] = static_cast<uint8_t>((value >> (5 + green_bits) & 31) * 255 / 31);
  to[1] = static_cast<uint8_t>((value >> 5 & green_most) * 255 / green_most);
  to[2] = static_cast<uint8_t>((value & 31) * 255 / 31);
}

// Returns the pixel's index into the palette; pixels fill a byte from its highest bits down.
int index_of(const uint8_t* row, int x, int bits) {
  const int64_t at = int64_t{x} * bits;
  return row[at / 8] >> (8 - bits - at % 8) & ((1 << bits) - 1);
}

}  // namespace

DecodeStatus read_bmp_layout(std::span<const uint8_t> bytes, BmpLayout& layout) {
  ByteReader reader(bytes, false);
  const uint32_t header_bytes = reader.u32(14);
  const bool is_old = header_bytes == kOldHeader;
  const uint32_t width = is_old ? reader.u16(18) : reader.u32(18);
  uint32_t height = is_old ? reader.u16(20) : reader.u32(22);
  layout.from_top = !is_old && height >= 0x80000000u;
  if (layout.from_top) height = 0u - height;
  layout.bits = reader.u16(is_old ? 24 : 28);
  const uint32_t compression = is_old ? kRaw : reader.u32(30);
  layout.pixels_at = reader.u32(10);
  if (reader.went_outside()) return cut_short(bytes.size());
  constexpr uint32_t kMax = 0x7fffffff;
  if (!is_known_header(header_bytes) || width == 0 || height == 0 || width > kMax ||
      height > kMax) {
    return {DecodeCode::corrupt, 14, "a bad BMP header"};
  }
  layout.size = {static_cast<int>(width), static_cast<int>(height)};
  const bool has_palette = layout.bits == 1 || layout.bits == 4 || layout.bits == 8;
  layout.is_packed =
      (compression == kRuns8 && layout.bits == 8) || (compression == kRuns4 && layout.bits == 4);
  const bool is_read = has_palette ? compression == kRaw || layout.is_packed
                                   : layout.bits == 16 || layout.bits == 24 || layout.bits == 32;
  if (!is_read) return unsupported_bmp(layout, compression);
  if (has_palette) {
    const DecodeStatus status = find_palette(reader, header_bytes, layout);
    if (!status.ok() && !reader.went_outside()) return status;
  } else if (compression == kBitFields ? !read_bit_fields(reader, layout) : compression != kRaw) {
    return unsupported_bmp(layout, compression);
  } else if (layout.pixels_at == 0) {
    layout.pixels_at =
        kFileHeader + header_bytes + (compression == kBitFields && header_bytes == 40 ? 12 : 0);
  }
  if (reader.went_outside()) return cut_short(bytes.size());
  layout.row_bytes = (int64_t{layout.size.width} * layout.bits + 31) / 32 * 4;
  return {};
}

DecodeStatus read_bmp_pixels(std::span<const uint8_t> bytes, Box region, CodecFrame& frame) {
  BmpLayout layout;
  const DecodeStatus status = read_bmp_layout(bytes, layout);
  if (!status.ok()) return status;
  std::optional<BmpRuns> runs;
  if (layout.is_packed && !runs.emplace(bytes, layout).read()) {
    return {runs->reached_the_end() ? DecodeCode::truncated : DecodeCode::corrupt, -1,
            "a BMP whose runs end before its pixels"};
  }
  frame.begin(region, FrameColours::rgb);
  const int pixel_bytes = layout.bits / 8;
  for (int row = 0; row < region.height; ++row) {
    const int y = region.y + row;
    const int stored = layout.from_top ? y : layout.size.height - 1 - y;
    const uint8_t* from =
        runs ? runs->row(stored) : bytes.data() + layout.pixels_at + stored * layout.row_bytes;
    uint8_t* to = frame.row(row);
    for (int x = region.x; x < region.x + region.width; ++x, to += 3) {
      if (layout.bits <= 8) {
        const int index = runs ? from[x] : index_of(from, x, layout.bits);
        std::copy_n(layout.palette[index], 3, to);
        continue;
      }
      const uint8_t* pixel = from + int64_t{x} * pixel_bytes;
      if (layout.bits == 16) {
        unpack_16(pixel, layout.green_bits, to);
        continue;
      }
      to[0] = pixel[layout.red];
      to[1] = pixel[layout.green];
      to[2] = pixel[layout.blue];
    }
  }
  return {};
}

}  // namespace stoker
