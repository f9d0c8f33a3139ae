// Our own parsers of PNG, BMP, GIF, PGM and PPM, WebP and TIFF (headers and structure; libraries
// read the pixels), and of EXIF: no access outside the bytes, and no impossible values.
#include <cstdlib>

#include "decode/codec/decoder.h"
#include "decode/orientation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const std::span<const uint8_t> file(data, size);
  const auto is_orientation = [](int value) { return value >= 1 && value <= 8; };
  if (!is_orientation(exif_orientation(file)) || !is_orientation(jpeg_orientation(file))) {
    std::abort();
  }
  for (const ImageFormat format :
       {ImageFormat::png, ImageFormat::bmp, ImageFormat::pnm, ImageFormat::webp, ImageFormat::tiff,
        ImageFormat::gif, ImageFormat::jpeg2000, ImageFormat::avif}) {
    CodecHeader header;
    header.format = format;
    if (!read_codec_header(file, header).ok()) continue;
    if (header.size.width <= 0 || header.size.height <= 0 || !is_orientation(header.orientation)) {
      std::abort();
    }
    check_codec_body(file, header);
  }
  return 0;
}
