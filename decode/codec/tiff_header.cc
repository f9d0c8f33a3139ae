#include "decode/codec/tiff_header.h"

#include <algorithm>
#include <string>

#include "decode/byte_reader.h"

namespace stoker {
namespace {

enum Tag : uint16_t {
  kWidth = 256,
  kHeight = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kFillOrder = 266,
  kStripOffsets = 273,
  kOrientation = 274,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripBytes = 279,
  kPlanarConfiguration = 284,
  kColourMap = 320,
  kTileWidth = 322,
  kTileHeight = 323,
  kTileOffsets = 324,
  kTileBytes = 325,
  kExtraSamples = 338,
  kSampleFormat = 339,
};

// A directory entry that holds integers.
struct Field {
  uint32_t count = 0;
  uint32_t bytes_each = 0;
  size_t at = 0;  // offset of the first value
};

class TiffDirectory {
 public:
  explicit TiffDirectory(std::span<const uint8_t> bytes)
      : reader_(bytes, !bytes.empty() && bytes[0] == 'M'), begin_(reader_.u32(4)) {
    entries_ = reader_.u16(begin_);
  }

  // Returns false if a tag occurs twice (readers disagree about which one counts) or is out of
  // order, or if the table is cut.
  bool is_sound() {
    for (int i = 1; i < entries_; ++i) {
      if (reader_.u16(entry(i)) <= reader_.u16(entry(i - 1))) return false;
    }
    reader_.u8(entry(entries_) - 1);
    return entries_ > 0 && !reader_.went_outside();
  }

  Field find(Tag tag) {
    constexpr uint16_t kByte = 1, kShort = 3, kLong = 4;
    for (int i = 0; i < entries_; ++i) {
      const size_t at = entry(i);
      if (reader_.u16(at) != tag) continue;
      const uint16_t type = reader_.u16(at + 2);
      const uint32_t each = type == kByte ? 1 : type == kShort ? 2 : type == kLong ? 4 : 0;
      const uint64_t size = uint64_t{each} * reader_.u32(at + 4);
      if (each == 0 || size > reader_.size()) return {};
      return {reader_.u32(at + 4), each, size <= 4 ? at + 8 : reader_.u32(at + 8)};
    }
    return {};
  }

  uint32_t value(const Field& field, uint32_t index) {
    const size_t at = field.at + size_t{index} * field.bytes_each;
    return field.bytes_each == 1   ? reader_.u8(at)
           : field.bytes_each == 2 ? reader_.u16(at)
                                   : reader_.u32(at);
  }

  uint32_t first(Tag tag, uint32_t otherwise) {
    const Field field = find(tag);
    return field.count == 0 ? otherwise : value(field, 0);
  }

  // Returns true if the field is missing or all of its values are `expected`. Looks at the first 8.
  bool all_equal(Tag tag, uint32_t expected) {
    const Field field = find(tag);
    for (uint32_t i = 0; i < std::min(field.count, 8u); ++i) {
      if (value(field, i) != expected) return false;
    }
    return true;
  }

  bool went_outside() const { return reader_.went_outside(); }
  size_t size() const { return reader_.size(); }

 private:
  size_t entry(int i) const { return begin_ + 2 + 12 * static_cast<size_t>(i); }

  ByteReader reader_;
  size_t begin_;
  int entries_ = 0;
};

constexpr uint32_t kWhiteIsZero = 0, kBlackIsZero = 1, kRgb = 2, kPalette = 3, kCmyk = 5, kYcc = 6;
constexpr uint32_t kUncompressed = 1;
// The meaning of an extra sample; kNone: there is none.
constexpr uint32_t kUnknown = 0, kTimesAlpha = 1, kAlpha = 2, kAlphaOfCorel = 999;
constexpr uint32_t kNone = ~0u;

// CCITT, LZW, JPEG, deflate, PackBits, LZMA, Zstandard, WebP: what Pillow reads, except the JPEG of
// TIFF 6.0, which was never fully specified.
bool is_known(uint32_t compression) {
  constexpr uint32_t kKnown[] = {1, 2, 3, 4, 5, 7, 8, 32773, 32946, 34925, 50000, 50001};
  return std::find(std::begin(kKnown), std::end(kKnown), compression) != std::end(kKnown);
}

// Gray and RGB are accepted with the layouts of alpha that Pillow handles.
bool choose_gray(uint32_t extra, TiffLayout& layout) {
  layout.colours = FrameColours::gray;
  const uint32_t bits = layout.bits;
  if (layout.samples == 2) {
    return layout.photometric == kBlackIsZero && bits == 8 && extra == kAlpha;
  }
  const bool is_small = bits == 1 || bits == 2 || bits == 4 || bits == 8;
  return layout.samples == 1 && extra == kNone &&
         (is_small || (bits == 16 && layout.photometric == kBlackIsZero));
}

// Reads the colours: all reds, all greens, all blues, of 16 bits, whose high bytes Pillow takes.
bool read_palette(TiffDirectory& tiff, TiffLayout& layout) {
  const uint32_t bits = layout.bits;
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8) return false;
  const Field colours = tiff.find(kColourMap);
  const uint32_t count = 1u << bits;
  if (colours.bytes_each != 2 || colours.count != 3 * count) return false;
  for (uint32_t i = 0; i < 3 * count; ++i) {
    layout.palette[i % count][i / count] = static_cast<uint8_t>(tiff.value(colours, i) >> 8);
  }
  layout.has_palette = true;
  layout.colours = FrameColours::rgb;
  return true;
}

bool choose_rgb(uint32_t extra, TiffLayout& layout) {
  layout.colours = extra == kTimesAlpha ? FrameColours::rgb_times_alpha : FrameColours::rgb;
  if (layout.bits != 8 && layout.bits != 16) return false;
  if (layout.samples == 3) return extra == kNone;
  // Pillow reads an unnamed fourth plane as alpha by which the colours were multiplied.
  if (extra == kNone) return layout.samples == 4 && !layout.is_separate;
  if (extra == kAlphaOfCorel) return layout.samples == 4 && layout.bits == 8;
  return (extra == kUnknown || extra == kTimesAlpha || extra == kAlpha) && layout.samples >= 4 &&
         layout.samples <= (layout.bits == 8 ? 6u : 4u);
}

// Returns false for a variant that Pillow refuses or misreads, or that this reader does not have.
bool choose_colours(TiffDirectory& tiff, TiffLayout& layout) {
  const Field extras = tiff.find(kExtraSamples);
  const uint32_t extra = extras.count == 0 ? kNone : tiff.value(extras, 0);
  const uint32_t of_colour = layout.photometric == kCmyk ? 4 : layout.photometric <= 1 ? 1 : 3;
  for (uint32_t i = 1; i < std::min(extras.count, 8u); ++i) {
    if (tiff.value(extras, i) != kUnknown) return false;
  }
  if (extras.count != 0 && of_colour + extras.count != layout.samples) return false;
  if (!tiff.all_equal(kBitsPerSample, layout.bits) || !tiff.all_equal(kSampleFormat, 1) ||
      !is_known(layout.compression)) {
    return false;
  }
  const uint32_t orientation = tiff.first(kOrientation, 1);
  layout.orientation = orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  const uint32_t fill_order = tiff.first(kFillOrder, 1);
  if (fill_order != 1 && (fill_order != 2 || extra != kNone || layout.bits == 16)) return false;
  // Pillow reads planes of 16 bits without compression as if they had 8.
  if (layout.is_separate && (layout.samples == 1 || layout.bits < 8 ||
                             (layout.bits == 16 && layout.compression == kUncompressed))) {
    return false;
  }
  switch (layout.photometric) {
    case kWhiteIsZero:
    case kBlackIsZero:
      return choose_gray(extra, layout);
    case kRgb:
      return choose_rgb(extra, layout);
    case kPalette:
      return layout.samples == 1 && extra == kNone && read_palette(tiff, layout);
    case kCmyk:
      layout.colours = FrameColours::cmyk;
      return layout.bits == 8 && layout.samples >= 4 && layout.samples <= 6 &&
             (extra == kNone ? layout.samples == 4 : extra == kUnknown) && fill_order == 1;
    case kYcc:
      // Pillow reads it without compression as if it were RGB with a fourth sample.
      layout.is_ycc = true;
      return layout.bits == 8 && layout.samples == 3 && extra == kNone && fill_order == 1 &&
             layout.compression != kUncompressed;
    default:
      return false;
  }
}

// The strips or tiles of an image.
struct Parts {
  int64_t count = 0;
  int64_t last = 0;        // strips or tiles of one plane
  int64_t bytes_each = 0;  // without compression
  int64_t bytes_last = 0;  // of a plane's last strip, which may have fewer rows
};

Parts parts_of(TiffDirectory& tiff, bool tiled) {
  const bool is_separate = tiff.first(kPlanarConfiguration, 1) == 2;
  const int64_t samples = tiff.first(kSamplesPerPixel, 1);
  const int64_t width = tiff.first(kWidth, 0), height = tiff.first(kHeight, 0);
  const int64_t across = tiled ? tiff.first(kTileWidth, 0) : width;
  const int64_t down = tiled ? tiff.first(kTileHeight, 0)
                             : std::min<int64_t>(tiff.first(kRowsPerStrip, ~0u), height);
  if (across == 0 || down == 0) return {};
  const int64_t bits = int64_t{tiff.first(kBitsPerSample, 1)} * (is_separate ? 1 : samples);
  const int64_t line = (across * bits + 7) / 8;
  const int64_t each = (width + across - 1) / across * ((height + down - 1) / down);
  const int64_t rows_last = tiled || height % down == 0 ? down : height % down;
  return {each * (is_separate ? samples : 1), each, line * down, line * rows_last};
}

}  // namespace

DecodeStatus read_tiff_layout(std::span<const uint8_t> bytes, TiffLayout& layout) {
  TiffDirectory tiff(bytes);
  const bool is_sound = tiff.is_sound();
  const uint32_t width = tiff.first(kWidth, 0);
  const uint32_t height = tiff.first(kHeight, 0);
  layout = {};
  layout.photometric = tiff.first(kPhotometric, kWhiteIsZero);
  layout.compression = tiff.first(kCompression, kUncompressed);
  layout.samples = tiff.first(kSamplesPerPixel, 1);
  layout.bits = tiff.first(kBitsPerSample, 1);
  const uint32_t planes = tiff.first(kPlanarConfiguration, 1);
  layout.is_separate = planes == 2;
  const bool is_read = (planes == 1 || planes == 2) && choose_colours(tiff, layout);
  constexpr uint32_t kMost = 0x7fffffff;
  if (tiff.went_outside()) {
    return {DecodeCode::truncated, static_cast<int64_t>(bytes.size()), "the file ends too early"};
  }
  if (!is_sound || width == 0 || height == 0 || width > kMost || height > kMost) {
    return {DecodeCode::corrupt, 0, "a bad TIFF directory"};
  }
  layout.size = {static_cast<int>(width), static_cast<int>(height)};
  if (is_read) return {};
  return {DecodeCode::unsupported, 0,
          "a TIFF of photometric " + std::to_string(layout.photometric) + ", compression " +
              std::to_string(layout.compression) + ", " + std::to_string(layout.samples) +
              " samples of " + std::to_string(layout.bits) + " bits" +
              (layout.is_separate ? " in planes" : "")};
}

DecodeStatus check_tiff_body(std::span<const uint8_t> bytes) {
  TiffDirectory tiff(bytes);
  const bool tiled = tiff.find(kTileOffsets).count != 0;
  const Field offsets = tiff.find(tiled ? kTileOffsets : kStripOffsets);
  const Field sizes = tiff.find(tiled ? kTileBytes : kStripBytes);
  if (offsets.count == 0 || offsets.count != sizes.count) {
    return {DecodeCode::corrupt, 0, "a TIFF without a place for its pixels"};
  }
  const Parts parts = parts_of(tiff, tiled);
  if (offsets.count != parts.count) {
    return {DecodeCode::corrupt, 0, "a TIFF with another number of strips or tiles than it needs"};
  }
  const bool is_raw = tiff.first(kCompression, kUncompressed) == kUncompressed;
  for (uint32_t i = 0; i < offsets.count; ++i) {
    const int64_t size = tiff.value(sizes, i);
    const int64_t end = tiff.value(offsets, i) + size;
    const bool is_last = (i + 1) % parts.last == 0;
    const bool is_short = is_raw && size < (is_last ? parts.bytes_last : parts.bytes_each);
    if (end > std::ssize(bytes) || is_short || tiff.went_outside()) {
      return {DecodeCode::truncated, static_cast<int64_t>(bytes.size()), "the file ends too early"};
    }
  }
  return {};
}

}  // namespace stoker
