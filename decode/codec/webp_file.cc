#include <cstring>

#include "decode/byte_reader.h"
#include "decode/codec/file_headers.h"
#include "decode/orientation.h"

namespace stoker {
namespace {

// RIFF: chunks of a tag, the length of the data, the data, and a byte if that length is odd.
constexpr size_t kFirstWebpChunk = 12, kChunkHead = 8;

DecodeStatus bad_webp(size_t at, const char* what) {
  return {DecodeCode::corrupt, static_cast<int64_t>(at), what};
}

bool is_tag(std::span<const uint8_t> bytes, size_t at, const char* tag) {
  return bytes.size() >= at + 4 && std::memcmp(bytes.data() + at, tag, 4) == 0;
}

// Calls take(at, data) for each chunk from `at` on until it returns true. `data` is cut at the end
// of the bytes.
template <class Take>
bool find_chunk(std::span<const uint8_t> bytes, size_t at, const Take& take) {
  ByteReader reader(bytes, false);
  while (at + kChunkHead <= bytes.size()) {
    const size_t length = reader.u32(at + 4);
    if (take(at, reader.part(at + kChunkHead, length))) return true;
    at += kChunkHead + length + length % 2;
  }
  return false;
}

bool set_size(uint32_t width, uint32_t height, Size& size) {
  size = {static_cast<int>(width), static_cast<int>(height)};
  return width > 0 && height > 0;
}

// Finds the first chunk of pixels. libwebp would read on after its end.
bool find_pixels(std::span<const uint8_t> bytes, size_t at, std::span<const uint8_t>& data) {
  ByteReader reader(bytes, false);
  return find_chunk(bytes, at,
                    [&](size_t chunk, std::span<const uint8_t> content) {
                      if (!is_tag(bytes, chunk, "VP8 ") && !is_tag(bytes, chunk, "VP8L")) {
                        return false;
                      }
                      if (content.size() == reader.u32(chunk + 4)) data = content;
                      return true;
                    }) &&
         !data.empty();
}

}  // namespace

DecodeStatus read_webp_header(std::span<const uint8_t> bytes, WebpHeader& header) {
  ByteReader reader(bytes, false);
  bool is_known = false;
  if (is_tag(bytes, kFirstWebpChunk, "VP8 ")) {
    is_known = reader.u24(23) == 0x2a019d &&
               set_size(reader.u16(26) & 0x3fff, reader.u16(28) & 0x3fff, header.size);
  } else if (is_tag(bytes, kFirstWebpChunk, "VP8L")) {
    const uint32_t sizes = reader.u32(21);
    is_known = reader.u8(20) == 0x2f &&
               set_size((sizes & 0x3fff) + 1, (sizes >> 14 & 0x3fff) + 1, header.size);
  } else if (is_tag(bytes, kFirstWebpChunk, "VP8X")) {
    is_known = set_size(reader.u24(24) + 1, reader.u24(27) + 1, header.size);
  }
  if (reader.went_outside()) {
    return cut_short(bytes.size());
  }
  if (!is_known) return bad_webp(kFirstWebpChunk, "a bad WebP header");
  find_chunk(bytes, kFirstWebpChunk, [&](size_t at, std::span<const uint8_t> data) {
    const bool is_exif = is_tag(bytes, at, "EXIF");
    if (is_exif) header.orientation = exif_orientation(data);
    return is_exif;
  });
  return {};
}

DecodeStatus find_webp_frame(std::span<const uint8_t> bytes, Size canvas, WebpFrame& frame) {
  constexpr uint8_t kAnimated = 0x02;
  constexpr size_t kFrameHead = 16;
  ByteReader reader(bytes, false);
  frame.box = {0, 0, canvas.width, canvas.height};
  const DecodeStatus no_pixels = bad_webp(bytes.size(), "a WebP without pixels");
  if (!is_tag(bytes, kFirstWebpChunk, "VP8X") || (reader.u8(20) & kAnimated) == 0) {
    return find_pixels(bytes, kFirstWebpChunk, frame.data) ? DecodeStatus{} : no_pixels;
  }
  std::span<const uint8_t> first;
  find_chunk(bytes, kFirstWebpChunk, [&](size_t at, std::span<const uint8_t> data) {
    const bool is_frame = is_tag(bytes, at, "ANMF");
    if (is_frame) first = data;
    return is_frame;
  });
  ByteReader head(first, false);
  const uint32_t x = 2 * head.u24(0), y = 2 * head.u24(3);
  const uint32_t width = head.u24(6) + 1, height = head.u24(9) + 1;
  if (first.size() < kFrameHead || !find_pixels(first, kFrameHead, frame.data)) return no_pixels;
  frame.box = {static_cast<int>(x), static_cast<int>(y), static_cast<int>(width),
               static_cast<int>(height)};
  if (!lies_inside(frame.box, canvas)) {
    return bad_webp(kFirstWebpChunk, "a frame of a WebP does not lie on its canvas");
  }
  return {};
}

}  // namespace stoker
