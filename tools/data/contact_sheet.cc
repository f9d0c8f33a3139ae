#include "tools/data/contact_sheet.h"

#include <png.h>

#include <algorithm>
#include <stdexcept>

#include "tools/data/bitmap_font.h"
#include "tools/data/output_file.h"

namespace stoker {

ContactSheet::ContactSheet(Size size, SheetColor ground)
    : size_(size), pixels_(static_cast<size_t>(size.width) * size.height * 3) {
  fill({0, 0, size.width, size.height}, ground);
}

void ContactSheet::fill(Box box, SheetColor color) {
  const int right = std::min(box.x + box.width, size_.width);
  const int bottom = std::min(box.y + box.height, size_.height);
  for (int y = std::max(box.y, 0); y < bottom; ++y) {
    for (int x = std::max(box.x, 0); x < right; ++x) {
      uint8_t* pixel = &pixels_[(static_cast<size_t>(y) * size_.width + x) * 3];
      pixel[0] = color.r;
      pixel[1] = color.g;
      pixel[2] = color.b;
    }
  }
}

void ContactSheet::draw_image(ImageView image, int x, int y, int scale) {
  for (int row = 0; row < image.height; ++row) {
    const uint8_t* pixel = image.data + row * image.stride_bytes;
    for (int column = 0; column < image.width; ++column, pixel += 3) {
      fill({x + column * scale, y + row * scale, scale, scale}, {pixel[0], pixel[1], pixel[2]});
    }
  }
}

void ContactSheet::draw_frame(Box box, SheetColor color) {
  fill({box.x, box.y, box.width, 1}, color);
  fill({box.x, box.y + box.height - 1, box.width, 1}, color);
  fill({box.x, box.y, 1, box.height}, color);
  fill({box.x + box.width - 1, box.y, 1, box.height}, color);
}

void ContactSheet::draw_text(const std::string& text, int x, int y, int max_width, int scale,
                             SheetColor color) {
  const int advance = (kGlyphWidth + 1) * scale;
  const size_t fitting = static_cast<size_t>(std::max(max_width / advance, 0));
  for (const char character : text.substr(0, fitting)) {
    const auto& columns = glyph(character);
    for (int column = 0; column < kGlyphWidth; ++column) {
      for (int row = 0; row < kGlyphHeight; ++row) {
        if ((columns[column] >> row & 1) == 0) continue;
        fill({x + column * scale, y + row * scale, scale, scale}, color);
      }
    }
    x += advance;
  }
}

void write_png(const std::string& path, ImageView image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<std::byte> file(bytes);
  const auto stride = static_cast<png_int_32>(image.stride_bytes);
  if (!png_image_write_to_memory(&header, file.data(), &bytes, 0, image.data, stride, nullptr)) {
    throw std::runtime_error("cannot encode " + path + " as PNG: " + header.message);
  }
  write_file(path, std::span(file).first(bytes));
}

}  // namespace stoker
