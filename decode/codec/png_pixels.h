// Turns the rows of a PNG into RGB, as Pillow's convert("RGB") does (decoder.h has the table).
// Internal to the PNG reader. Threads: one at a time.
#pragma once

#include <cstdint>

#include "decode/codec/png_file.h"

namespace stoker {

// The bytes that may be written behind a row of RGB.
inline constexpr size_t kRgbSpare = 4;

class PngPixels {
 public:
  // Prepares for one file. `palette` outlives its use.
  void begin(const PngHeader& header, const PngPalette& palette);
  // Whether a row is RGB of 8 bits already.
  bool are_rgb() const { return kind_ == Kind::rgb; }
  // Writes columns [x, x + width) of a row as RGB.
  void rgb(const uint8_t* row, int x, int width, uint8_t* to) const;

 private:
  // How the samples lie: for gray and palettes by the number of their bits.
  enum class Kind : uint8_t { rgb, indexed, small, samples, clipped };

  Kind kind_ = Kind::rgb;
  int bits_ = 8;
  size_t pixel_bytes_ = 3;
  size_t green_ = 1, blue_ = 2;  // bytes of the pixel; 0 if it is gray
  uint32_t colours_[256];        // of gray and palettes; the bytes are red, green, blue, 0
};

}  // namespace stoker
