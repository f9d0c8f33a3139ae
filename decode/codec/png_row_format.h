// How the pixels of a PNG are to lie in memory. Internal to the PNG reader. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

// The bytes that may be written behind a row.
inline constexpr size_t kPngRowSpare = 4;

class PngRowFormat {
 public:
  virtual ~PngRowFormat() = default;
  // 1, 3 or 4, of a pixel as it is written.
  virtual size_t pixel_bytes() const = 0;
  // Whether the file's rows, without their filters, are so already.
  virtual bool is_as_stored() const = 0;
  // Writes columns [x, x + width) of a row of the file.
  virtual void write(const uint8_t* row, int x, int width, uint8_t* to) const = 0;
};

}  // namespace stoker
