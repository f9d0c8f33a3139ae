#include "decode/codec/tiff_header.h"

#include <algorithm>
#include <string>

#include "decode/byte_reader.h"
#include "decode/orientation.h"

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
  kFax3Options = 292,
  kFax4Options = 293,
  kPredictor = 317,
  kColourMap = 320,
  kTileWidth = 322,
  kTileHeight = 323,
  kTileOffsets = 324,
  kTileBytes = 325,
  kExtraSamples = 338,
  kSampleFormat = 339,
  kJpegTables = 347,
  kYccCoefficients = 529,
  kYccSubsampling = 530,
  kYccPositioning = 531,
  kReferenceBlackWhite = 532,
};

// BigTIFF has offsets and counts of 64 bits.
class TiffDirectory {
 public:
  explicit TiffDirectory(std::span<const uint8_t> bytes)
      : reader_(bytes, !bytes.empty() && bytes[0] == 'M'), is_big_(reader_.u16(2) == kBigVersion) {
    const uint64_t begin = is_big_ ? reader_.u64(8) : reader_.u32(4);
    // Behind the end, where reads are refused and sums do not wrap around.
    begin_ = static_cast<size_t>(std::min<uint64_t>(begin, reader_.size()));
    const uint64_t entries = is_big_ ? reader_.u64(begin_) : reader_.u16(begin_);
    entries_ = static_cast<int>(std::min<uint64_t>(entries, kMaxEntries + 1));
  }

  // Returns false if a tag occurs twice (readers disagree about which one counts) or is out of
  // order, if the table is cut, or if a BigTIFF has offsets of another size.
  bool is_sound() {
    constexpr uint32_t kOffsetBytes = 8;
    if (is_big_ && (reader_.u16(4) != kOffsetBytes || reader_.u16(6) != 0)) return false;
    if (entries_ > kMaxEntries) return false;
    for (int i = 1; i < entries_; ++i) {
      if (reader_.u16(entry(i)) <= reader_.u16(entry(i - 1))) return false;
    }
    reader_.u8(entry(entries_) - 1);
    return entries_ > 0 && !reader_.went_outside();
  }

  TiffField find(Tag tag) {
    for (int i = 0; i < entries_ && !reader_.went_outside(); ++i) {
      const size_t at = entry(i);
      if (reader_.u16(at) != tag) continue;
      const uint32_t each = bytes_of_type(reader_.u16(at + 2));
      const uint64_t count = is_big_ ? reader_.u64(at + 4) : reader_.u32(at + 4);
      if (each == 0 || count > reader_.size() / each) return {};
      const size_t value_at = at + (is_big_ ? 12 : 8);
      const uint64_t here = is_big_ ? 8 : 4;  // so many bytes lie in the entry itself
      if (each * count <= here) return {count, each, value_at};
      return {count, each, is_big_ ? reader_.u64(value_at) : reader_.u32(value_at)};
    }
    return {};
  }

  uint64_t value(const TiffField& field, uint64_t index) {
    const uint64_t end = reader_.size();
    const auto at = static_cast<size_t>(std::min(field.at, end) + index * field.bytes_each);
    switch (field.bytes_each) {
      case 1:
        return reader_.u8(at);
      case 2:
        return reader_.u16(at);
      case 4:
        return reader_.u32(at);
      default:
        return reader_.u64(at);
    }
  }

  // Values of more than 32 bits are as good as none.
  uint32_t first(Tag tag, uint32_t otherwise) {
    const TiffField field = find(tag);
    if (field.count == 0) return otherwise;
    return static_cast<uint32_t>(std::min<uint64_t>(value(field, 0), ~0u));
  }

  int orientation() {
    for (int i = 0; i < entries_ && !reader_.went_outside(); ++i) {
      if (reader_.u16(entry(i)) == kOrientation) {
        return entry_orientation(reader_, entry(i), is_big_);
      }
    }
    return 1;
  }

  // Returns true if the field is missing or all of its values are `expected`. Looks at the first 8.
  bool all_equal(Tag tag, uint32_t expected) {
    const TiffField field = find(tag);
    for (uint64_t i = 0; i < std::min<uint64_t>(field.count, 8); ++i) {
      if (value(field, i) != expected) return false;
    }
    return true;
  }

  // REQUIRES: is_sound().
  TiffPatch patch() {
    const size_t entry_bytes = is_big_ ? 20 : 12;
    TiffPatch result{begin_, std::vector<uint8_t>(entry(0) - begin_)};
    uint64_t count = 0;
    for (int i = 0; i < entries_; ++i) {
      if (!is_needed(reader_.u16(entry(i)))) continue;
      const std::span<const uint8_t> kept = reader_.part(entry(i), entry_bytes);
      result.bytes.insert(result.bytes.end(), kept.begin(), kept.end());
      ++count;
    }
    const size_t count_bytes = entry(0) - begin_;
    for (size_t i = 0; i < count_bytes; ++i, count >>= 8) {
      result.bytes[reader_.is_big_endian() ? count_bytes - 1 - i : i] = static_cast<uint8_t>(count);
    }
    result.bytes.insert(result.bytes.end(), is_big_ ? 8 : 4, 0);  // no next directory
    return result;
  }

  bool went_outside() const { return reader_.went_outside(); }

 private:
  static bool is_needed(uint16_t tag) {
    constexpr Tag kNeeded[] = {kWidth,
                               kHeight,
                               kBitsPerSample,
                               kCompression,
                               kPhotometric,
                               kFillOrder,
                               kStripOffsets,
                               kSamplesPerPixel,
                               kRowsPerStrip,
                               kStripBytes,
                               kPlanarConfiguration,
                               kFax3Options,
                               kFax4Options,
                               kPredictor,
                               kColourMap,
                               kTileWidth,
                               kTileHeight,
                               kTileOffsets,
                               kTileBytes,
                               kExtraSamples,
                               kSampleFormat,
                               kJpegTables,
                               kYccCoefficients,
                               kYccSubsampling,
                               kYccPositioning,
                               kReferenceBlackWhite};
    return std::find(std::begin(kNeeded), std::end(kNeeded), tag) != std::end(kNeeded);
  }

  static constexpr uint16_t kBigVersion = 43;
  static constexpr int kMaxEntries = 0xffff;  // as many as a directory of a small TIFF can have

  uint32_t bytes_of_type(uint16_t type) const {
    constexpr uint16_t kByte = 1, kShort = 3, kLong = 4, kLong8 = 16;
    if (type == kLong8) return is_big_ ? 8 : 0;
    return type == kByte ? 1 : type == kShort ? 2 : type == kLong ? 4 : 0;
  }
  size_t entry(int i) const {
    return begin_ + (is_big_ ? 8 + 20 * static_cast<size_t>(i) : 2 + 12 * static_cast<size_t>(i));
  }

  ByteReader reader_;
  const bool is_big_;
  size_t begin_ = 0;
  int entries_ = 0;
};

constexpr uint32_t kBlackIsZero = 1, kTiffRgb = 2, kTiffPalette = 3, kTiffCmyk = 5, kTiffYcc = 6;
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
// A second sample that does not show in the pixels.
bool is_left_out(uint32_t extra) { return extra == kUnknown || extra == kAlpha; }

bool choose_gray(uint32_t extra, TiffLayout& layout) {
  layout.colours = FrameColours::gray;
  const uint32_t bits = layout.bits;
  if (layout.samples == 2) {
    return layout.photometric == kBlackIsZero && bits == 8 && is_left_out(extra);
  }
  const bool is_small = bits == 1 || bits == 2 || bits == 4 || bits == 8;
  return layout.samples == 1 && extra == kNone &&
         (is_small || (bits == 16 && layout.photometric == kBlackIsZero));
}

// Reads the colours: all reds, all greens, all blues, of 16 bits, whose high bytes Pillow takes.
bool read_tiff_palette(TiffDirectory& tiff, TiffLayout& layout) {
  const uint32_t bits = layout.bits;
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8) return false;
  const TiffField colours = tiff.find(kColourMap);
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
  const TiffField extras = tiff.find(kExtraSamples);
  const uint32_t extra = tiff.first(kExtraSamples, kNone);
  const bool is_single = layout.photometric <= kBlackIsZero || layout.photometric == kTiffPalette;
  const uint32_t of_colour = layout.photometric == kTiffCmyk ? 4 : is_single ? 1 : 3;
  for (uint64_t i = 1; i < std::min<uint64_t>(extras.count, 8); ++i) {
    if (tiff.value(extras, i) != kUnknown) return false;
  }
  if (extras.count != 0 && of_colour + extras.count != layout.samples) return false;
  if (!tiff.all_equal(kBitsPerSample, layout.bits) || !tiff.all_equal(kSampleFormat, 1) ||
      !is_known(layout.compression)) {
    return false;
  }
  layout.orientation = tiff.orientation();
  const uint32_t fill_order = tiff.first(kFillOrder, 1);
  const bool is_deflated =
      layout.compression == kTiffDeflate || layout.compression == kTiffOldDeflate;
  layout.is_bit_reversed = fill_order == 2;
  if (fill_order != 1 && (fill_order != 2 || extra != kNone || layout.bits == 16 || is_deflated)) {
    return false;
  }
  // Pillow reads planes of 16 bits without compression as if they had 8.
  if (layout.is_separate && (layout.samples == 1 || layout.bits < 8 ||
                             (layout.bits == 16 && layout.compression == kTiffUncompressed))) {
    return false;
  }
  switch (layout.photometric) {
    case kTiffWhiteIsZero:
    case kBlackIsZero:
      return choose_gray(extra, layout);
    case kTiffRgb:
      return choose_rgb(extra, layout);
    case kTiffPalette:
      return (layout.samples == 2 ? layout.bits == 8 && is_left_out(extra)
                                  : layout.samples == 1 && extra == kNone) &&
             !layout.is_separate && read_tiff_palette(tiff, layout);
    case kTiffCmyk:
      layout.colours = FrameColours::cmyk;
      return layout.bits == 8 && layout.samples >= 4 && layout.samples <= 6 &&
             (extra == kNone ? layout.samples == 4 : extra == kUnknown) && fill_order == 1;
    case kTiffYcc:
      // Pillow reads it without compression as if it were RGB with a fourth sample.
      layout.is_ycc = true;
      return layout.bits == 8 && layout.samples == 3 && extra == kNone && fill_order == 1 &&
             layout.compression != kTiffUncompressed;
    default:
      return false;
  }
}

void read_parts(TiffDirectory& tiff, TiffLayout& layout) {
  layout.is_tiled = tiff.find(kTileOffsets).count != 0;
  layout.offsets = tiff.find(layout.is_tiled ? kTileOffsets : kStripOffsets);
  layout.sizes = tiff.find(layout.is_tiled ? kTileBytes : kStripBytes);
  constexpr uint32_t kMax = 0x7fffffff;
  const auto height = static_cast<uint32_t>(layout.size.height);
  const uint32_t across =
      layout.is_tiled ? tiff.first(kTileWidth, 0) : static_cast<uint32_t>(layout.size.width);
  const uint32_t down = layout.is_tiled ? tiff.first(kTileHeight, 0)
                                        : std::min(tiff.first(kRowsPerStrip, ~0u), height);
  if (across > 0 && across <= kMax && down > 0 && down <= kMax) {
    layout.part = {static_cast<int>(across), static_cast<int>(down)};
  }
}

// libtiff takes 16 bytes for each part. Strips are one for each row of each plane, at most.
bool are_tiny(int64_t parts, Size size) {
  constexpr int64_t kParts = int64_t{1} << 19, kPixelsOfAPart = 32;
  return parts > kParts + int64_t{size.width} * size.height / kPixelsOfAPart;
}

// A tile may be larger than the picture, as the plan of memory says.
bool is_huge(const TiffLayout& layout) {
  constexpr int64_t kMaxSpareTile = int64_t{16} << 20;
  const int64_t samples = layout.is_separate ? 1 : layout.samples;
  const int64_t line = (layout.size.width * samples * layout.bits + 7) / 8;
  // In floating point, which does not overflow: sizes are still what the file says.
  return static_cast<double>(layout.line_bytes()) * layout.part.height >
         static_cast<double>(line) * layout.size.height + kMaxSpareTile;
}

}  // namespace

bool TiffLayout::is_converted() const {
  constexpr uint32_t kJpeg = 7;
  return is_ycc && (compression != kJpeg || is_separate);
}

int TiffLayout::lines_of_part(int64_t top) const {
  return static_cast<int>(is_tiled ? part.height
                                   : std::min<int64_t>(part.height, size.height - top));
}

int64_t TiffLayout::line_bytes() const {
  return (int64_t{part.width} * bits * (is_separate ? 1 : samples) + 7) / 8;
}

DecodeStatus read_tiff_layout(std::span<const uint8_t> bytes, TiffLayout& layout) {
  TiffDirectory tiff(bytes);
  const bool is_sound = tiff.is_sound();
  const uint32_t width = tiff.first(kWidth, 0);
  const uint32_t height = tiff.first(kHeight, 0);
  layout = {};
  layout.photometric = tiff.first(kPhotometric, kTiffWhiteIsZero);
  layout.compression = tiff.first(kCompression, kTiffUncompressed);
  layout.samples = tiff.first(kSamplesPerPixel, 1);
  layout.bits = tiff.first(kBitsPerSample, 1);
  layout.predictor = tiff.first(kPredictor, 1);
  layout.is_big_endian = !bytes.empty() && bytes[0] == 'M';
  const uint32_t planes = tiff.first(kPlanarConfiguration, 1);
  layout.is_separate = planes == 2;
  const bool is_read = (planes == 1 || planes == 2) && choose_colours(tiff, layout);
  constexpr uint32_t kMax = 0x7fffffff;
  if (tiff.went_outside()) {
    return cut_short(bytes.size());
  }
  if (!is_sound || width == 0 || height == 0 || width > kMax || height > kMax) {
    return {DecodeCode::corrupt, 0, "a bad TIFF directory"};
  }
  layout.size = {static_cast<int>(width), static_cast<int>(height)};
  read_parts(tiff, layout);
  if (is_read) return {};
  return {DecodeCode::unsupported, 0,
          "a TIFF of photometric " + std::to_string(layout.photometric) + ", compression " +
              std::to_string(layout.compression) + ", " + std::to_string(layout.samples) +
              " samples of " + std::to_string(layout.bits) + " bits" +
              (layout.is_separate ? " in planes" : "")};
}

DecodeStatus check_tiff_body(std::span<const uint8_t> bytes) {
  TiffLayout layout;
  const DecodeStatus status = read_tiff_layout(bytes, layout);
  if (!status.ok()) return status;
  const TiffField &offsets = layout.offsets, &sizes = layout.sizes;
  if (offsets.count == 0 || offsets.count != sizes.count) {
    return {DecodeCode::corrupt, 0, "a TIFF without a place for its pixels"};
  }
  const auto count = static_cast<int64_t>(offsets.count);
  const int64_t planes = layout.is_separate ? layout.samples : 1;
  if (layout.part.width == 0 || count % planes != 0 ||
      count / planes != layout.parts_of_a_plane()) {
    return {DecodeCode::corrupt, 0, "a TIFF with another number of strips or tiles than it needs"};
  }
  if (is_huge(layout)) {
    return {DecodeCode::corrupt, 0, "a TIFF with tiles that are larger than the picture"};
  }
  if (are_tiny(count, layout.size)) {
    return {DecodeCode::unsupported, 0, "a TIFF of " + std::to_string(count) + " tiny tiles"};
  }
  TiffDirectory tiff(bytes);
  const bool is_raw = layout.compression == kTiffUncompressed;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t at = tiff.value(offsets, static_cast<uint64_t>(i));
    const uint64_t size = tiff.value(sizes, static_cast<uint64_t>(i));
    const int64_t top = i % layout.parts_of_a_plane() / layout.parts_across() * layout.part.height;
    const bool is_outside = at > bytes.size() || size > bytes.size() - at || tiff.went_outside();
    if (is_outside ||
        (is_raw && static_cast<int64_t>(size) / layout.line_bytes() < layout.lines_of_part(top))) {
      return cut_short(bytes.size());
    }
  }
  return {};
}

TiffPatch needed_tiff_directory(std::span<const uint8_t> bytes) {
  return TiffDirectory(bytes).patch();
}

std::span<const uint8_t> tiff_part(std::span<const uint8_t> bytes, const TiffLayout& layout,
                                   int64_t number) {
  TiffDirectory tiff(bytes);
  return bytes.subspan(tiff.value(layout.offsets, static_cast<uint64_t>(number)),
                       tiff.value(layout.sizes, static_cast<uint64_t>(number)));
}

}  // namespace stoker
