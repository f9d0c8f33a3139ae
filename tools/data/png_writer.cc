#include "tools/data/png_writer.h"

#include <png.h>

#include <stdexcept>
#include <string>

namespace stoker {

std::vector<uint8_t> encode_png(ImageView image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<uint8_t> file(bytes);
  const auto stride = static_cast<png_int_32>(image.stride_bytes);
  if (!png_image_write_to_memory(&header, file.data(), &bytes, 0, image.data, stride, nullptr)) {
    throw std::runtime_error(std::string("cannot encode a picture as PNG: ") + header.message);
  }
  file.resize(bytes);
  return file;
}

}  // namespace stoker
