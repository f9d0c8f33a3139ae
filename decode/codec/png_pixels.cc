#include "decode/codec/png_pixels.h"

#include <cstring>

namespace stoker {
namespace {

// Writes red, green and blue, and a byte that the next pixel overwrites.
void put_rgb(uint32_t colour, uint8_t* to) { std::memcpy(to, &colour, sizeof colour); }

uint32_t colour_of(uint8_t red, uint8_t green, uint8_t blue) {
  const uint8_t bytes[4] = {red, green, blue, 0};
  uint32_t colour;
  std::memcpy(&colour, bytes, sizeof colour);
  return colour;
}

}  // namespace

void PngPixels::begin(const PngHeader& header, const PngPalette& palette) {
  bits_ = header.bits;
  pixel_bytes_ = static_cast<size_t>(header.pixel_bits()) / 8;
  const bool is_colour = header.channels() >= 3;
  const size_t sample_bytes = bits_ == 16 ? 2 : 1;
  green_ = is_colour ? sample_bytes : 0;
  blue_ = 2 * green_;
  kind_ = Kind::samples;
  if (header.colours == PngColours::rgb && bits_ == 8) kind_ = Kind::rgb;
  if (header.channels() != 1) return;
  if (bits_ == 16) {
    kind_ = Kind::clipped;
    return;
  }
  kind_ = bits_ == 8 ? Kind::indexed : Kind::small;
  const int most = (1 << bits_) - 1;
  for (int i = 0; i <= most; ++i) {
    const auto gray = static_cast<uint8_t>(i * 255 / most);
    const uint8_t* rgb = palette.rgb[i];
    colours_[i] = header.colours == PngColours::palette ? colour_of(rgb[0], rgb[1], rgb[2])
                                                        : colour_of(gray, gray, gray);
  }
}

void PngPixels::write(const uint8_t* row, int x, int width, uint8_t* to) const {
  const uint8_t* from = row + static_cast<size_t>(x) * pixel_bytes_;
  uint8_t* const end = to + 3 * static_cast<size_t>(width);
  switch (kind_) {
    case Kind::rgb:
      std::memcpy(to, from, 3 * static_cast<size_t>(width));
      break;
    case Kind::indexed:
      for (; to < end; to += 3) put_rgb(colours_[*from++], to);
      break;
    case Kind::small:
      for (int64_t bit = int64_t{x} * bits_; to < end; to += 3, bit += bits_) {
        put_rgb(colours_[row[bit / 8] >> (8 - bits_ - bit % 8) & ((1 << bits_) - 1)], to);
      }
      break;
    case Kind::samples:  // the first byte of each, which is the high one
      for (; to < end; to += 3, from += pixel_bytes_) {
        put_rgb(colour_of(from[0], from[green_], from[blue_]), to);
      }
      break;
    case Kind::clipped:  // Pillow's mode "I" to "RGB": everything above 255 is white
      for (; to < end; to += 3, from += 2) {
        const uint8_t gray = from[0] != 0 ? uint8_t{255} : from[1];
        put_rgb(colour_of(gray, gray, gray), to);
      }
      break;
  }
}

}  // namespace stoker
