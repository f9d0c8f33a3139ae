#include "tools/data/contact_sheet.h"

#include <algorithm>
#include <span>

#include "tools/data/bitmap_font.h"
#include "tools/data/output_file.h"
#include "tools/data/png_writer.h"

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
  const std::vector<uint8_t> file = encode_png(image);
  write_file(path, std::as_bytes(std::span(file)));
}

}  // namespace stoker
