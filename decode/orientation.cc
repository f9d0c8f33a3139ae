#include "decode/orientation.h"

#include "decode/byte_reader.h"
#include "decode/jpeg/headers.h"

namespace stoker {
namespace {

constexpr uint16_t kOrientationTag = 0x0112;

// One huge image must not hold its memory for the rest of the run.
constexpr size_t kKeptBytes = size_t{32} << 20;

bool is_transposed(int orientation) { return orientation >= 5; }
bool runs_left(int orientation) {  // stored columns run backwards along their oriented axis
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}
bool runs_up(int orientation) {  // stored rows do
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

// Returns how many bytes a value has; 0 for types by which Pillow does not turn. It turns by floats
// as well, which nobody writes.
size_t bytes_of_integer(uint16_t type) {
  constexpr uint16_t kShort = 3, kLong = 4, kSignedByte = 6, kSignedShort = 8, kSignedLong = 9;
  constexpr uint16_t kDirectory = 13, kLong8 = 16;
  switch (type) {
    case kSignedByte:
      return 1;
    case kShort:
    case kSignedShort:
      return 2;
    case kLong:
    case kSignedLong:
    case kDirectory:
      return 4;
    case kLong8:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

int exif_orientation(std::span<const uint8_t> block) {
  if (begins_with(block, "Exif\0\0", 6)) block = block.subspan(6);
  const bool big_endian = begins_with(block, "MM", 2);
  if (!big_endian && !begins_with(block, "II", 2)) return 1;
  ByteReader reader(block, big_endian);
  if (reader.u16(2) != 42) return 1;
  const size_t directory = reader.u32(4);
  const int entries = reader.u16(directory);
  int orientation = 1;
  for (int i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * static_cast<size_t>(i);
    if (reader.u16(entry) == kOrientationTag) {
      orientation = entry_orientation(reader, entry, false);
    }
    if (reader.went_outside()) return 1;
  }
  return orientation;
}

int entry_orientation(ByteReader& reader, size_t entry, bool is_big) {
  const size_t each = bytes_of_integer(reader.u16(entry + 2));
  const uint64_t count = is_big ? reader.u64(entry + 4) : reader.u32(entry + 4);
  const size_t inside = is_big ? 8 : 4;  // so many bytes lie in the entry itself
  size_t at = entry + (is_big ? 12 : 8);
  if (each == 0 || count == 0) return 1;
  if (count > inside / each) at = is_big ? reader.u64(at) : reader.u32(at);
  const uint64_t value = each == 1   ? reader.u8(at)
                         : each == 2 ? reader.u16(at)
                         : each == 4 ? reader.u32(at)
                                     : reader.u64(at);
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
}

int jpeg_orientation(std::span<const uint8_t> bytes) {
  constexpr uint8_t kApp1 = 0xE1, kStartOfScan = 0xDA, kEndOfImage = 0xD9;
  // A marker that has no length field.
  const auto stands_alone = [](uint8_t marker) {
    return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
  };
  ByteReader reader(bytes, true);
  for (size_t at = find_marker(bytes, 2); at + 3 <= bytes.size(); at = find_marker(bytes, at)) {
    const uint8_t marker = bytes[at++];
    if (marker == kStartOfScan || marker == kEndOfImage) return 1;
    if (stands_alone(marker)) continue;
    const size_t length = reader.u16(at);
    if (length < 2) return 1;
    const std::span<const uint8_t> segment = reader.part(at + 2, length - 2);
    if (marker == kApp1 && begins_with(segment, "Exif\0", 5)) return exif_orientation(segment);
    at += length;
  }
  return 1;
}

Size oriented_size(Size stored, int orientation) {
  return is_transposed(orientation) ? Size{stored.height, stored.width} : stored;
}

Box stored_box(Box oriented, Size stored, int orientation) {
  Box box = oriented;
  if (is_transposed(orientation)) box = {oriented.y, oriented.x, oriented.height, oriented.width};
  if (runs_left(orientation)) box.x = stored.width - box.x - box.width;
  if (runs_up(orientation)) box.y = stored.height - box.y - box.height;
  return box;
}

void OrientingSink::begin(Size stored_region, int orientation) {
  stored_ = stored_region;
  orientation_ = orientation;
  row_ = 0;
  const size_t need = size_t{3} * stored_.width * stored_.height;
  if (pixels_.size() < need) pixels_.resize(need);
}

void OrientingSink::rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) {
  const ptrdiff_t line = ptrdiff_t{3} * oriented_size(stored_, orientation_).width;
  const ptrdiff_t column_step = is_transposed(orientation_) ? line : 3;
  const ptrdiff_t row_step = is_transposed(orientation_) ? 3 : line;
  const bool left = runs_left(orientation_);
  for (int r = 0; r < count; ++r, ++row_) {
    const uint8_t* from = first + r * stride_bytes;
    uint8_t* to = pixels_.data() +
                  row_step * (runs_up(orientation_) ? stored_.height - 1 - row_ : row_) +
                  (left ? column_step * (stored_.width - 1) : 0);
    const ptrdiff_t step = left ? -column_step : column_step;
    for (int x = 0; x < stored_.width; ++x, from += 3) {
      uint8_t* pixel = to + x * step;
      pixel[0] = from[0];
      pixel[1] = from[1];
      pixel[2] = from[2];
    }
  }
}

ImageView OrientingSink::oriented() const {
  const Size size = oriented_size(stored_, orientation_);
  return {pixels_.data(), size.width, size.height, ptrdiff_t{3} * size.width};
}

void OrientingSink::end() {
  if (pixels_.size() > kKeptBytes) ScratchVector<uint8_t>().swap(pixels_);
}

}  // namespace stoker
