// The picture on which `stoker peek` draws pictures. Everything is clipped to the sheet. A value;
// one thread at a time. write_png() throws std::runtime_error with the path.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "decode/image.h"

namespace stoker {

struct SheetColor {
  uint8_t r = 0, g = 0, b = 0;
};

class ContactSheet {
 public:
  ContactSheet(Size size, SheetColor ground);
  Size size() const { return size_; }
  ImageView view() const { return {pixels_.data(), size_.width, size_.height, 3 * size_.width}; }

  // Every pixel of `image` becomes scale x scale pixels, with the top left corner at (x, y).
  void draw_image(ImageView image, int x, int y, int scale);
  void draw_frame(Box box, SheetColor color);  // one pixel wide, inside `box`
  // Mixes the pixels in `box` with a share of the colour, 0 to 1.
  void tint(Box box, SheetColor color, double share);
  // One line of text, cut at `max_width` pixels; `scale` pixels per dot of the font.
  void draw_text(const std::string& text, int x, int y, int max_width, int scale, SheetColor color);

 private:
  void fill(Box box, SheetColor color);

  Size size_;
  std::vector<uint8_t> pixels_;  // (height, width, 3)
};

void write_png(const std::string& path, ImageView image);

// A tiny built-in font, so that captions need no font file: 5 x 8 pixels a character (row 7 is for
// descenders), printable ASCII.
inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 8;

// Returns the columns from left to right; bit 0 is the topmost row. All but printable ASCII gives
// '?'.
const std::array<uint8_t, kGlyphWidth>& glyph(char character);

}  // namespace stoker
