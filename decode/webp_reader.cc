// The only file that knows libwebp.
#include <webp/decode.h>

#include "decode/codec_readers.h"

namespace stoker {

DecodeStatus read_webp_pixels(std::span<const uint8_t> bytes, const CodecHeader& header,
                              CodecFrame& frame) {
  int width = 0, height = 0;
  if (WebPGetInfo(bytes.data(), bytes.size(), &width, &height) == 0) {
    return {DecodeCode::corrupt, -1, "libwebp cannot read the header"};
  }
  if (Size{width, height} != header.size) {
    return {DecodeCode::corrupt, -1, "the pixels are not what the header says"};
  }
  frame.begin(header.size, FrameColours::rgb);
  const size_t room = frame.stride() * static_cast<size_t>(height);
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), frame.row(0), room,
                        static_cast<int>(frame.stride())) == nullptr) {
    return {DecodeCode::corrupt, -1, "libwebp cannot read the pixels"};
  }
  return {};
}

}  // namespace stoker
