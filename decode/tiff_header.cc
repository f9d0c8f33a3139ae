#include "decode/tiff_header.h"

#include <algorithm>
#include <string>

#include "decode/byte_reader.h"

namespace stoker {
namespace {

enum Tag : uint16_t {
  kWidth = 256,
  kHeight = 257,
  kBitsPerSample = 258,
  kPhotometric = 262,
  kStripOffsets = 273,
  kOrientation = 274,
  kSamplesPerPixel = 277,
  kStripBytes = 279,
  kPlanarConfiguration = 284,
  kTileOffsets = 324,
  kTileBytes = 325,
  kExtraSamples = 338,
  kSampleFormat = 339,
};

// A directory entry that holds integers.
struct Field {
  uint32_t count = 0;
  uint32_t bytes_each = 0;
  size_t at = 0;  // of the first value
};

class TiffDirectory {
 public:
  explicit TiffDirectory(std::span<const uint8_t> bytes)
      : reader_(bytes, !bytes.empty() && bytes[0] == 'M'), begin_(reader_.u32(4)) {
    entries_ = reader_.u16(begin_);
  }

  // False if a tag stands twice (readers disagree about which one counts) or the table is cut.
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

  // Are all values of the field (if it is there) `expected`?
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

bool choose_rule(TiffDirectory& tiff, SampleRule& rule) {
  constexpr uint32_t kWhiteIsZero = 0, kBlackIsZero = 1, kRgb = 2;
  const uint32_t photometric = tiff.first(kPhotometric, kWhiteIsZero);
  const uint32_t samples = tiff.first(kSamplesPerPixel, 1);
  const uint32_t bits = tiff.first(kBitsPerSample, 1);
  if (!tiff.all_equal(kBitsPerSample, bits) || !tiff.all_equal(kSampleFormat, 1) ||
      tiff.find(kExtraSamples).count != 0 || tiff.first(kPlanarConfiguration, 1) != 1 ||
      tiff.first(kOrientation, 1) != 1) {
    return false;
  }
  if (photometric == kRgb && samples == 3) {
    rule = bits == 16 ? SampleRule::high_byte_of_16 : SampleRule::as_is;
    return bits == 8 || bits == 16;
  }
  if (photometric == kBlackIsZero && samples == 1) {
    rule = bits == 16 ? SampleRule::clip_16_bits : SampleRule::as_is;
    return bits == 1 || bits == 8 || bits == 16;
  }
  return photometric == kWhiteIsZero && samples == 1 && (bits == 1 || bits == 8);
}

}  // namespace

DecodeStatus read_tiff_header(std::span<const uint8_t> bytes, CodecHeader& header) {
  TiffDirectory tiff(bytes);
  const bool is_sound = tiff.is_sound();
  const uint32_t width = tiff.first(kWidth, 0);
  const uint32_t height = tiff.first(kHeight, 0);
  const bool is_known = choose_rule(tiff, header.samples);
  constexpr uint32_t kMost = 0x7fffffff;
  if (tiff.went_outside()) {
    return {DecodeCode::truncated, static_cast<int64_t>(bytes.size()), "the file ends too early"};
  }
  if (!is_sound || width == 0 || height == 0 || width > kMost || height > kMost) {
    return {DecodeCode::corrupt, 0, "a bad TIFF directory"};
  }
  header.size = {static_cast<int>(width), static_cast<int>(height)};
  if (is_known) return {};
  return {DecodeCode::unsupported, 0,
          "a TIFF of photometric " + std::to_string(tiff.first(kPhotometric, 0)) + ", " +
              std::to_string(tiff.first(kSamplesPerPixel, 1)) + " samples of " +
              std::to_string(tiff.first(kBitsPerSample, 1)) + " bits"};
}

DecodeStatus check_tiff_body(std::span<const uint8_t> bytes) {
  TiffDirectory tiff(bytes);
  const bool tiled = tiff.find(kTileOffsets).count != 0;
  const Field offsets = tiff.find(tiled ? kTileOffsets : kStripOffsets);
  const Field sizes = tiff.find(tiled ? kTileBytes : kStripBytes);
  if (offsets.count == 0 || offsets.count != sizes.count) {
    return {DecodeCode::corrupt, 0, "a TIFF without a place for its pixels"};
  }
  for (uint32_t i = 0; i < offsets.count; ++i) {
    const uint64_t end = uint64_t{tiff.value(offsets, i)} + tiff.value(sizes, i);
    if (end > bytes.size() || tiff.went_outside()) {
      return {DecodeCode::truncated, static_cast<int64_t>(bytes.size()), "the file ends too early"};
    }
  }
  return {};
}

}  // namespace stoker
