// The chunks of a PNG file: what its pixels are, and where they lie. Internal to the codecs.
//
// Only what the pixels need is read: an error in any other chunk does not make the picture bad, as
// long as its checksum is right. The rules are libpng's: a critical chunk that is not known, a
// palette that is missing, doubled or of a wrong size, a second header and a chunk whose name is no
// name are errors if they come before the pixels.
//
// Threads: any. Errors: a status. Memory: none but the struct.
#pragma once

#include <cstdint>
#include <span>

#include "decode/codec/inflate.h"
#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

enum class PngColours : uint8_t { gray = 0, rgb = 2, palette = 3, gray_alpha = 4, rgb_alpha = 6 };

struct PngHeader {
  Size size;
  PngColours colours = PngColours::gray;
  int bits = 8;  // per sample
  bool is_interlaced = false;
  int orientation = 1;  // of its eXIf chunk

  int channels() const;
  int pixel_bits() const { return bits * channels(); }
  // Bytes of a row of so many pixels, without the byte that names its filter.
  size_t row_bytes(int width) const {
    return (static_cast<size_t>(width) * static_cast<size_t>(pixel_bits()) + 7) / 8;
  }
};

struct PngPalette {
  uint8_t rgb[256][4] = {};  // the fourth byte is 0; colours that the file lacks are black
};

// Reads the header and the orientation.
DecodeStatus read_png_header(std::span<const uint8_t> bytes, PngHeader& header);

// Checks that all chunks are there down to the end, with the right checksums.
DecodeStatus check_png_chunks(std::span<const uint8_t> bytes);

// Reads the palette, and finds the pixels: the bytes where their first chunk begins. REQUIRES: the
// header was read, the chunks were checked.
DecodeStatus find_png_pixels(std::span<const uint8_t> bytes, const PngHeader& header,
                             PngPalette& palette, size_t& pixels_at);

// The data of the chunks of pixels that follow one another from `at` on.
class PngPixelData final : public InflateInput {
 public:
  PngPixelData(std::span<const uint8_t> bytes, size_t at) : bytes_(bytes), at_(at) {}
  bool next(std::span<const uint8_t>& piece) override;

 private:
  const std::span<const uint8_t> bytes_;
  size_t at_;
};

}  // namespace stoker
