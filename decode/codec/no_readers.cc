// Replaces the readers in a build without libtiff and libwebp.
#include "decode/codec/readers.h"

namespace stoker {
namespace {

DecodeStatus refused(const char* format, const char* library) {
  return {DecodeCode::unsupported, 0,
          std::string("stoker was built without ") + library + ": it decodes no " + format};
}

}  // namespace

DecodeStatus read_tiff_pixels(std::span<const uint8_t>, Box, CodecFrame&, const TakeFrame&) {
  return refused("TIFF", "libtiff");
}
DecodeStatus read_webp_pixels(std::span<const uint8_t>, const CodecHeader&, Box, CodecFrame&) {
  return refused("WebP", "libwebp");
}

}  // namespace stoker
