#include <cstring>
#include <string>

#include "decode/byte_reader.h"
#include "decode/codec/bmp_file.h"
#include "decode/codec/decoder.h"
#include "decode/codec/png_file.h"
#include "decode/codec/pnm_file.h"
#include "decode/codec/tiff_header.h"
#include "decode/orientation.h"

namespace stoker {
namespace {

DecodeStatus cut_short(size_t bytes) {
  return {DecodeCode::truncated, static_cast<int64_t>(bytes), "the file ends too early"};
}
DecodeStatus corrupt(size_t at, const char* what) {
  return {DecodeCode::corrupt, static_cast<int64_t>(at), what};
}
DecodeStatus unsupported(const std::string& what) { return {DecodeCode::unsupported, 0, what}; }

bool is_tag(std::span<const uint8_t> bytes, size_t at, const char* tag) {
  return bytes.size() >= at + 4 && std::memcmp(bytes.data() + at, tag, 4) == 0;
}

// Sets a size from a header. Returns false if an int cannot hold it or if it is 0.
bool set_size(uint32_t width, uint32_t height, Size& size) {
  constexpr uint32_t kMost = 0x7fffffff;
  if (width == 0 || height == 0 || width > kMost || height > kMost) return false;
  size = {static_cast<int>(width), static_cast<int>(height)};
  return true;
}

// ---- PNG

DecodeStatus read_png(std::span<const uint8_t> bytes, CodecHeader& header) {
  PngHeader png;
  const DecodeStatus status = read_png_header(bytes, png);
  header.size = png.size;
  header.orientation = png.orientation;
  return status;
}

// ---- BMP

DecodeStatus read_bmp(std::span<const uint8_t> bytes, CodecHeader& header) {
  BmpLayout layout;
  const DecodeStatus status = read_bmp_layout(bytes, layout);
  header.size = layout.size;
  return status;
}

DecodeStatus check_bmp(std::span<const uint8_t> bytes) {
  BmpLayout layout;
  const DecodeStatus status = read_bmp_layout(bytes, layout);
  if (!status.ok()) return status;
  const int64_t room = static_cast<int64_t>(bytes.size()) - layout.pixels_at;
  if (room / layout.row_bytes < layout.size.height) return cut_short(bytes.size());
  return {};
}

// ---- PGM and PPM

DecodeStatus read_pnm(std::span<const uint8_t> bytes, CodecHeader& header) {
  PnmLayout layout;
  const DecodeStatus status = read_pnm_layout(bytes, layout);
  header.size = layout.size;
  return status;
}

DecodeStatus check_pnm(std::span<const uint8_t> bytes) {
  PnmLayout layout;
  const DecodeStatus status = read_pnm_layout(bytes, layout);
  if (!status.ok()) return status;
  const int64_t room = static_cast<int64_t>(bytes.size()) - layout.pixels_at;
  if (room / layout.row_bytes() < layout.size.height) return cut_short(bytes.size());
  return {};
}

// ---- TIFF

DecodeStatus read_tiff(std::span<const uint8_t> bytes, CodecHeader& header) {
  TiffLayout layout;
  const DecodeStatus status = read_tiff_layout(bytes, layout);
  header.size = layout.size;
  return status;
}

// ---- WebP: RIFF, then chunks {tag, length, data, padding to even}

DecodeStatus read_webp(std::span<const uint8_t> bytes, CodecHeader& header) {
  ByteReader reader(bytes, false);
  constexpr uint8_t kAnimated = 0x02;
  bool known = false;
  if (is_tag(bytes, 12, "VP8 ")) {
    known = reader.u24(23) == 0x2a019d &&
            set_size(reader.u16(26) & 0x3fff, reader.u16(28) & 0x3fff, header.size);
  } else if (is_tag(bytes, 12, "VP8L")) {
    const uint32_t sizes = reader.u32(21);
    known = reader.u8(20) == 0x2f &&
            set_size((sizes & 0x3fff) + 1, (sizes >> 14 & 0x3fff) + 1, header.size);
  } else if (is_tag(bytes, 12, "VP8X")) {
    if (reader.u8(20) & kAnimated) return unsupported("an animated WebP");
    known = set_size(reader.u24(24) + 1, reader.u24(27) + 1, header.size);
  }
  if (reader.went_outside()) return cut_short(bytes.size());
  if (!known) return corrupt(12, "a bad WebP header");
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t length = reader.u32(at + 4);
    if (is_tag(bytes, at, "EXIF")) {
      header.orientation = exif_orientation(reader.part(at + 8, length));
      break;
    }
    at += 8 + length + length % 2;
  }
  return {};
}

DecodeStatus check_webp(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes, false);
  if (size_t{reader.u32(4)} + 8 > bytes.size()) return cut_short(bytes.size());
  return {};
}

}  // namespace

DecodeStatus read_codec_header(std::span<const uint8_t> bytes, CodecHeader& header) {
  switch (header.format) {
    case ImageFormat::png:
      return read_png(bytes, header);
    case ImageFormat::bmp:
      return read_bmp(bytes, header);
    case ImageFormat::webp:
      return read_webp(bytes, header);
    case ImageFormat::tiff:
      return read_tiff(bytes, header);
    case ImageFormat::pnm:
      return read_pnm(bytes, header);
    case ImageFormat::gif:
      return unsupported("GIF");
    default:
      return {DecodeCode::not_an_image, 0, "no known signature"};
  }
}

DecodeStatus check_codec_body(std::span<const uint8_t> bytes, const CodecHeader& header) {
  switch (header.format) {
    case ImageFormat::png:
      return check_png_chunks(bytes);
    case ImageFormat::bmp:
      return check_bmp(bytes);
    case ImageFormat::webp:
      return check_webp(bytes);
    case ImageFormat::tiff:
      return check_tiff_body(bytes);
    case ImageFormat::pnm:
      return check_pnm(bytes);
    default:
      return {};
  }
}

}  // namespace stoker
