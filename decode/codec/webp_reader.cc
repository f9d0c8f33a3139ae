// The only file that uses libwebp.
#include <webp/decode.h>

#include <cstring>

#include "decode/byte_reader.h"
#include "decode/codec/readers.h"

namespace stoker {
namespace {

// Returns the data of the first chunk that holds pixels. libwebp would read on after its end.
std::span<const uint8_t> pixel_chunk(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes, false);
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t length = reader.u32(at + 4);
    const std::span<const uint8_t> data = reader.part(at + 8, length);
    if (std::memcmp(&bytes[at], "VP8 ", 4) == 0 || std::memcmp(&bytes[at], "VP8L", 4) == 0) {
      return data.size() == length ? data : std::span<const uint8_t>{};
    }
    at += 8 + length + length % 2;
  }
  return {};
}

}  // namespace

DecodeStatus read_webp_pixels(std::span<const uint8_t> bytes, const CodecHeader& header,
                              CodecFrame& frame) {
  int width = 0, height = 0;
  const std::span<const uint8_t> data = pixel_chunk(bytes);
  if (WebPGetInfo(data.data(), data.size(), &width, &height) == 0) {
    return {DecodeCode::corrupt, -1, "libwebp cannot read the header"};
  }
  if (Size{width, height} != header.size) {
    return {DecodeCode::corrupt, -1, "the pixels are not what the header says"};
  }
  frame.begin(header.size, FrameColours::rgb);
  const size_t room = frame.stride() * static_cast<size_t>(height);
  if (WebPDecodeRGBInto(data.data(), data.size(), frame.row(0), room,
                        static_cast<int>(frame.stride())) == nullptr) {
    return {DecodeCode::corrupt, -1, "libwebp cannot read the pixels"};
  }
  return {};
}

}  // namespace stoker
