// Turns the rows of a PNG into RGB, as Pillow's convert("RGB") does (decoder.h has the table).
// Internal to the PNG reader. Threads: one at a time.
#pragma once

#include <cstdint>

#include "decode/codec/png_file.h"
#include "decode/codec/png_row_format.h"

namespace stoker {

class PngPixels final : public PngRowFormat {
 public:
  // Prepares for one file. `palette` outlives its use.
  void begin(const PngHeader& header, const PngPalette& palette);
  size_t pixel_bytes() const override { return 3; }
  bool is_as_stored() const override { return kind_ == Kind::rgb; }
  void write(const uint8_t* row, int x, int width, uint8_t* to) const override;

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
