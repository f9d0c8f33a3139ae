#include "decode/codec/png_file.h"

#include <algorithm>
#include <cstring>

#include "decode/byte_reader.h"
#include "decode/codec/checksums.h"
#include "decode/orientation.h"

namespace stoker {
namespace {

constexpr size_t kFirstPngChunk = 8;         // behind the signature
constexpr size_t kChunkFrame = 12;           // a chunk's length, name and checksum
constexpr size_t kPngHeaderBytes = 13;       // of the first chunk's data
constexpr uint32_t kMaxLength = 0x7fffffff;  // of a chunk

DecodeStatus bad_png(size_t at, const char* what) {
  return {DecodeCode::corrupt, static_cast<int64_t>(at), what};
}

bool is_named(std::span<const uint8_t> bytes, size_t at, const char* name) {
  return bytes.size() >= at + 8 && std::memcmp(bytes.data() + at + 4, name, 4) == 0;
}

// Returns true if the depth is one that this kind of colours may have.
bool is_depth(PngColours colours, int bits) {
  switch (colours) {
    case PngColours::gray:
      return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
    case PngColours::palette:
      return bits == 1 || bits == 2 || bits == 4 || bits == 8;
    case PngColours::rgb:
    case PngColours::gray_alpha:
    case PngColours::rgb_alpha:
      return bits == 8 || bits == 16;
  }
  return false;
}

bool is_name(std::span<const uint8_t> bytes, size_t at) {
  return std::all_of(&bytes[at + 4], &bytes[at + 8],
                     [](uint8_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
}

// Returns false if the file cannot do with such a palette. Gray pictures ignore theirs.
bool read_png_palette(std::span<const uint8_t> data, const PngHeader& header, PngPalette& palette) {
  if (header.channels() < 3 && header.colours != PngColours::palette) return true;
  if (data.empty()) return false;
  if (header.colours != PngColours::palette) return true;
  if (data.size() % 3 != 0 || data.size() > 3 * 256) return false;
  const size_t colours = std::min(data.size() / 3, size_t{1} << header.bits);
  for (size_t i = 0; i < colours; ++i) std::copy_n(&data[3 * i], 3, palette.rgb[i]);
  return true;
}

}  // namespace

int PngHeader::channels() const {
  switch (colours) {
    case PngColours::gray:
    case PngColours::palette:
      return 1;
    case PngColours::gray_alpha:
      return 2;
    case PngColours::rgb:
      return 3;
    case PngColours::rgb_alpha:
      return 4;
  }
  return 1;
}

DecodeStatus read_png_header(std::span<const uint8_t> bytes, PngHeader& header) {
  constexpr uint32_t kMaxSide = 0x7fffffff;
  ByteReader reader(bytes, true);
  if (bytes.size() < kFirstPngChunk + kChunkFrame + kPngHeaderBytes) return cut_short(bytes.size());
  const uint32_t width = reader.u32(16), height = reader.u32(20);
  header.bits = bytes[24];
  header.colours = static_cast<PngColours>(bytes[25]);
  const bool is_header =
      reader.u32(kFirstPngChunk) == kPngHeaderBytes && is_named(bytes, kFirstPngChunk, "IHDR") &&
      width >= 1 && height >= 1 && width <= kMaxSide && height <= kMaxSide &&
      is_depth(header.colours, header.bits) && bytes[26] == 0 && bytes[27] == 0 && bytes[28] <= 1;
  if (!is_header) return bad_png(kFirstPngChunk, "a bad PNG header");
  header.size = {static_cast<int>(width), static_cast<int>(height)};
  header.is_interlaced = bytes[28] == 1;
  for (size_t at = kFirstPngChunk; at + kChunkFrame <= bytes.size();) {
    if (is_named(bytes, at, "eXIf")) {
      header.orientation = exif_orientation(reader.part(at + 8, reader.u32(at)));
      break;
    }
    at += kChunkFrame + reader.u32(at);
  }
  return {};
}

DecodeStatus check_png_chunks(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes, true);
  for (size_t at = kFirstPngChunk;;) {
    if (at + kChunkFrame > bytes.size()) return cut_short(bytes.size());
    const size_t length = reader.u32(at);
    if (length > bytes.size() - at - kChunkFrame) return cut_short(bytes.size());
    if (crc32(reader.part(at + 4, length + 4)) != reader.u32(at + 8 + length)) {
      return bad_png(at, "a PNG chunk's checksum is wrong");
    }
    if (is_named(bytes, at, "IEND")) return {};
    at += kChunkFrame + length;
  }
}

DecodeStatus find_png_pixels(std::span<const uint8_t> bytes, const PngHeader& header,
                             PngPalette& palette, size_t& pixels_at) {
  ByteReader reader(bytes, true);
  bool has_palette = false;
  for (size_t at = kFirstPngChunk + kChunkFrame + kPngHeaderBytes;
       at + kChunkFrame <= bytes.size();) {
    const uint32_t length = reader.u32(at);
    if (length > kMaxLength || !is_name(bytes, at)) return bad_png(at, "a bad PNG chunk");
    if (is_named(bytes, at, "IDAT")) {
      if (header.colours == PngColours::palette && !has_palette) {
        return bad_png(at, "a PNG without its palette");
      }
      pixels_at = at;
      return {};
    }
    if (is_named(bytes, at, "PLTE")) {
      if (has_palette || !read_png_palette(reader.part(at + 8, length), header, palette)) {
        return bad_png(at, "a bad PNG palette");
      }
      has_palette = true;
    } else if (const bool is_critical = (bytes[at + 4] & 0x20) == 0; is_critical) {
      return bad_png(at, "a critical PNG chunk that is not known");
    }
    at += kChunkFrame + length;
  }
  return bad_png(bytes.size(), "a PNG without pixels");
}

bool PngPixelData::next(std::span<const uint8_t>& piece) {
  ByteReader reader(bytes_, true);
  if (!is_named(bytes_, at_, "IDAT")) return false;
  const uint32_t length = reader.u32(at_);
  piece = reader.part(at_ + 8, length);
  at_ += kChunkFrame + length;
  return true;
}

}  // namespace stoker
