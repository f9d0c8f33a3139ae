// The build without OpenCV: what is not JPEG is refused.
#include "decode/codec_decoder.h"

namespace stoker {

struct CodecDecoder::Impl {};

CodecDecoder::CodecDecoder() = default;
CodecDecoder::~CodecDecoder() = default;

DecodeStatus CodecDecoder::decode(std::span<const uint8_t>, const CodecHeader&, Box, RowSink&) {
  return {DecodeCode::unsupported, 0, "stoker was built without OpenCV: it decodes JPEG only"};
}

int64_t CodecDecoder::scratch_bytes() const { return 0; }

}  // namespace stoker
