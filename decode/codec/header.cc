#include <algorithm>
#include <string>

#include "decode/byte_reader.h"
#include "decode/codec/avif_file.h"
#include "decode/codec/decoder.h"
#include "decode/codec/file_headers.h"
#include "decode/codec/png_file.h"
#include "decode/codec/pnm_file.h"
#include "decode/codec/tiff_header.h"

namespace stoker {
namespace {

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
  if (room < 0) return cut_short(bytes.size());
  if (layout.is_packed) return {};  // how many bytes there must be is seen where they are read
  if (room / layout.row_bytes < layout.size.height) return cut_short(bytes.size());
  return {};
}

// ---- GIF

DecodeStatus read_gif(std::span<const uint8_t> bytes, CodecHeader& header) {
  GifLayout layout;
  const DecodeStatus status = read_gif_layout(bytes, layout);
  header.size = layout.size;
  return status;
}

DecodeStatus check_gif(std::span<const uint8_t> bytes) {
  GifLayout layout;
  const DecodeStatus status = read_gif_layout(bytes, layout);
  return status.ok() ? check_gif_blocks(bytes, layout) : status;
}

// ---- PBM, PGM and PPM

DecodeStatus read_pnm(std::span<const uint8_t> bytes, CodecHeader& header) {
  PnmLayout layout;
  const DecodeStatus status = read_pnm_layout(bytes, layout);
  header.size = layout.size;
  return status;
}

DecodeStatus check_pnm(std::span<const uint8_t> bytes) {
  PnmLayout layout;
  const DecodeStatus status = read_pnm_layout(bytes, layout);
  return status.ok() ? check_pnm_body(bytes, layout) : status;
}

// ---- TIFF

DecodeStatus read_tiff(std::span<const uint8_t> bytes, CodecHeader& header) {
  TiffLayout layout;
  const DecodeStatus status = read_tiff_layout(bytes, layout);
  header.size = layout.size;
  header.orientation = layout.orientation;
  header.is_always_turned = true;
  return status;
}

// ---- WebP

DecodeStatus read_webp(std::span<const uint8_t> bytes, CodecHeader& header) {
  WebpHeader webp;
  const DecodeStatus status = read_webp_header(bytes, webp);
  header.size = webp.size;
  header.orientation = webp.orientation;
  return status;
}

DecodeStatus check_webp(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes, false);
  if (size_t{reader.u32(4)} + 8 > bytes.size()) return cut_short(bytes.size());
  return {};
}

// ---- AVIF

DecodeStatus read_avif(std::span<const uint8_t> bytes, CodecHeader& header) {
  AvifHeader avif;
  const DecodeStatus status = read_avif_header(bytes, avif);
  header.size = avif.size;
  header.orientation = avif.orientation;
  header.planned_pixels = avif.planned_pixels;
  return status;
}

// ---- JPEG 2000

DecodeStatus read_jpeg2000(std::span<const uint8_t> bytes, CodecHeader& header) {
  constexpr int64_t kShare = 2;  // OpenJPEG takes up to 24 bytes for a pixel
  // Shorter sides than this are refused, too; with it the product does not overflow.
  constexpr int kMaxSide = 1 << 20;
  const DecodeStatus status = read_jpeg2000_header(bytes, header.size);
  const auto [width, height] = header.size;
  header.planned_pixels = kShare * std::min(width, kMaxSide) * std::min(height, kMaxSide);
  return status;
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
      return read_gif(bytes, header);
    case ImageFormat::jpeg2000:
      return read_jpeg2000(bytes, header);
    case ImageFormat::avif:
      return read_avif(bytes, header);
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
    case ImageFormat::gif:
      return check_gif(bytes);
    case ImageFormat::jpeg2000:
      return check_jpeg2000_body(bytes);
    case ImageFormat::avif:
      return check_avif_body(bytes);
    case ImageFormat::tiff:
      return check_tiff_body(bytes);
    case ImageFormat::pnm:
      return check_pnm(bytes);
    default:
      return {};
  }
}

}  // namespace stoker
