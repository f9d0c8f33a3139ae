#include <string>

#include "decode/byte_reader.h"
#include "decode/codec/file_headers.h"

namespace stoker {
namespace {

constexpr uint8_t kSignature[] = {0, 0, 0, 12, 'j', 'P', ' ', ' ', 13, 10, 0x87, 10};
constexpr uint8_t kBareStart[] = {0xff, 0x4f, 0xff, 0x51};
enum Marker : uint16_t {
  kStartMarker = 0xff4f,
  kSizeMarker = 0xff51,
  kCodingMarker = 0xff52,
  kCodingOfOneMarker = 0xff53,
  kTilePartMarker = 0xff90,
  kDataMarker = 0xff93,
  kEndMarker = 0xffd9,
};

DecodeStatus unsupported_jpeg2000(const char* what) {
  return {DecodeCode::unsupported, 0, std::string("a JPEG 2000 with ") + what};
}
DecodeStatus bad_jpeg2000(size_t at) {
  return {DecodeCode::corrupt, static_cast<int64_t>(at), "a bad JPEG 2000 header"};
}

// The fields of the boxes around the codestream.
struct Boxes {
  bool has_colours = false, has_palette = false;
  uint32_t colours = 0;  // of the first colour box: 16 is sRGB, 17 gray
  size_t codestream_at = 0;
};

// Reads the boxes in [at, end), and those inside the header's box. Returns false if one is bad.
bool read_boxes(std::span<const uint8_t> bytes, size_t at, size_t end, Boxes& boxes) {
  ByteReader reader(bytes, true);
  while (at + 8 <= end && boxes.codestream_at == 0) {
    const uint32_t type = reader.u32(at + 4);
    uint64_t length = reader.u32(at);
    const size_t head = length == 1 ? 16 : 8;  // with a length of 64 bits, or without
    if (length == 1) length = reader.u64(at + 8);
    const size_t content = at + head;
    if (type == 0x6a703263) {  // jp2c
      boxes.codestream_at = content;
      return content < end;
    }
    if ((length != 0 && length < head) || length > end - at) return false;
    const size_t box_end = length == 0 ? end : at + static_cast<size_t>(length);
    if (type == 0x6a703268 && !read_boxes(bytes, content, box_end, boxes)) return false;  // jp2h
    if (type == 0x636f6c72 && !boxes.has_colours) {                                       // colr
      boxes.has_colours = true;
      boxes.colours = reader.u8(content) == 1 ? reader.u32(content + 3) : 0;
    }
    boxes.has_palette |= type == 0x70636c72;  // pclr
    at = box_end;
  }
  return true;
}

struct Codestream {
  size_t at = 0;        // its first byte
  size_t tiles_at = 0;  // its first tile's part
  uint32_t channels = 0;
  Size size;
};

// The size, and the tiles. `at`: behind the marker.
DecodeStatus read_jpeg2000_size(std::span<const uint8_t> bytes, size_t at, Codestream& stream) {
  constexpr uint32_t kMaxSide = 0x7fffffff, kUnsigned8 = 7;
  constexpr uint64_t kTiles = 64, kPixelsOfATile = 1024;
  ByteReader reader(bytes, true);
  const uint32_t width = reader.u32(at + 4), height = reader.u32(at + 8);
  const uint32_t tile_width = reader.u32(at + 20), tile_height = reader.u32(at + 24);
  stream.channels = reader.u16(at + 36);
  if (width == 0 || height == 0 || width > kMaxSide || height > kMaxSide || tile_width == 0 ||
      tile_height == 0) {
    return bad_jpeg2000(at);
  }
  for (const size_t offset : {12u, 16u, 28u, 32u}) {
    if (reader.u32(at + offset) != 0) return unsupported_jpeg2000("an offset");
  }
  if (stream.channels < 1 || stream.channels > 4) {
    return unsupported_jpeg2000("other than 1 to 4 channels");
  }
  for (uint32_t c = 0; c < stream.channels; ++c) {
    const size_t channel = at + 38 + 3 * size_t{c};
    if (reader.u8(channel) != kUnsigned8 || reader.u16(channel + 1) != 0x0101) {
      return unsupported_jpeg2000("channels that have not 8 bits, or fewer pixels");
    }
  }
  const uint64_t tiles = ((uint64_t{width} + tile_width - 1) / tile_width) *
                         ((uint64_t{height} + tile_height - 1) / tile_height);
  if (tiles > kTiles + uint64_t{width} * height / kPixelsOfATile) {
    return unsupported_jpeg2000("tiny tiles");
  }
  stream.size = {static_cast<int>(width), static_cast<int>(height)};
  return reader.went_outside() ? bad_jpeg2000(at) : DecodeStatus{};
}

// How the tiles are coded. `at`: behind the marker.
DecodeStatus check_coding(std::span<const uint8_t> bytes, size_t at) {
  constexpr uint8_t kHasPrecincts = 1;
  constexpr int kMinPrecinct = 6, kMinBlock = 4;  // powers of two; those of a block less 4
  constexpr uint32_t kMaxLayers = 256, kMaxLevels = 32;
  ByteReader reader(bytes, true);
  const uint32_t levels = reader.u8(at + 7);
  if (levels > kMaxLevels) return bad_jpeg2000(at);
  if (reader.u16(at + 4) > kMaxLayers) return unsupported_jpeg2000("more than 256 layers");
  if (reader.u8(at + 8) + reader.u8(at + 9) < kMinBlock) {
    return unsupported_jpeg2000("tiny blocks");
  }
  const bool has_precincts = (reader.u8(at + 2) & kHasPrecincts) != 0;
  for (uint32_t level = 0; has_precincts && level <= levels; ++level) {
    const uint8_t precinct = reader.u8(at + 12 + level);
    if (precinct % 16 < kMinPrecinct || precinct / 16 < kMinPrecinct) {
      return unsupported_jpeg2000("tiny precincts");
    }
  }
  return reader.went_outside() ? bad_jpeg2000(at) : DecodeStatus{};
}

DecodeStatus read_main_header(std::span<const uint8_t> bytes, Codestream& stream) {
  ByteReader reader(bytes, true);
  bool has_coding = false;
  const bool begins_well =
      reader.u16(stream.at) == kStartMarker && reader.u16(stream.at + 2) == kSizeMarker;
  for (size_t at = stream.at + 2;;) {
    const uint16_t marker = reader.u16(at), length = reader.u16(at + 2);
    const size_t end = at + 2 + size_t{length};
    if (reader.went_outside() || end > bytes.size()) return cut_short(bytes.size());
    if (!begins_well || marker < 0xff00 || length < 2) return bad_jpeg2000(at);
    DecodeStatus status;
    if (marker == kSizeMarker) status = read_jpeg2000_size(bytes.first(end), at + 2, stream);
    if (marker == kCodingMarker) status = check_coding(bytes.first(end), at + 2);
    if (marker == kCodingOfOneMarker) {
      status = unsupported_jpeg2000("channels that are coded in different ways");
    }
    if (!status.ok()) return status;
    has_coding |= marker == kCodingMarker;
    if (marker == kTilePartMarker) {
      stream.tiles_at = at;
      return has_coding ? DecodeStatus{} : bad_jpeg2000(at);
    }
    at = end;
  }
}

// Checks the header of a tile's part, which must not say anything about coding.
DecodeStatus check_tile_header(std::span<const uint8_t> bytes, size_t at, size_t end) {
  constexpr size_t kTilePartBytes = 12;
  ByteReader reader(bytes, true);
  for (at += kTilePartBytes; at + 2 <= end;) {
    const uint16_t marker = reader.u16(at);
    if (marker == kDataMarker) return {};
    if (marker == kCodingMarker || marker == kCodingOfOneMarker) {
      return unsupported_jpeg2000("tiles that are coded in different ways");
    }
    const uint16_t length = reader.u16(at + 2);
    if (marker < 0xff00 || length < 2) break;
    at += 2 + size_t{length};
  }
  return bad_jpeg2000(at);
}

DecodeStatus read_codestream(std::span<const uint8_t> bytes, Codestream& stream) {
  Boxes boxes;
  const bool is_bare = begins_with(bytes, kBareStart, sizeof kBareStart);
  if (!is_bare) {
    if (!read_boxes(bytes, sizeof kSignature, bytes.size(), boxes)) return cut_short(bytes.size());
    if (boxes.codestream_at == 0) return cut_short(bytes.size());
  }
  stream.at = boxes.codestream_at;
  const DecodeStatus status = read_main_header(bytes, stream);
  if (!status.ok()) return status;
  constexpr uint32_t kRgb = 16, kGray = 17;
  const uint32_t colours = is_bare ? kRgb : boxes.colours;
  const bool is_known = colours == (stream.channels >= 3 ? kRgb : kGray);
  if (!is_known || boxes.has_palette) {
    return unsupported_jpeg2000("colours that are neither RGB nor gray");
  }
  return {};
}

}  // namespace

bool is_jpeg2000(std::span<const uint8_t> bytes) {
  return begins_with(bytes, kSignature, sizeof kSignature) ||
         begins_with(bytes, kBareStart, sizeof kBareStart);
}

DecodeStatus read_jpeg2000_header(std::span<const uint8_t> bytes, Size& size) {
  Codestream stream;
  const DecodeStatus status = read_codestream(bytes, stream);
  size = stream.size;
  return status;
}

DecodeStatus check_jpeg2000_body(std::span<const uint8_t> bytes) {
  Codestream stream;
  DecodeStatus status = read_codestream(bytes, stream);
  if (!status.ok()) return status;
  constexpr uint32_t kMinPart = 14;
  ByteReader reader(bytes, true);
  for (size_t at = stream.tiles_at;;) {
    const uint16_t marker = reader.u16(at);
    if (marker == kEndMarker) return {};
    const uint32_t length = reader.u32(at + 6);
    if (reader.went_outside() || length > bytes.size() - at) return cut_short(bytes.size());
    if (marker != kTilePartMarker || length < kMinPart) return bad_jpeg2000(at);
    status = check_tile_header(bytes, at, at + length);
    if (!status.ok()) return status;
    at += length;
  }
}

}  // namespace stoker
