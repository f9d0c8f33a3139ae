// EXIF orientation: reading it from hostile bytes, and turning pixels by it as
// PIL.ImageOps.exif_transpose does. "Stored" is how the file has the pixels, "oriented" how a
// viewer shows them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/image.h"
#include "decode/resize/row_resizer.h"

namespace stoker {

// The orientation (1..8) of a JPEG file: of its first APP1 "Exif" segment. 1 if it has none, or one
// that cannot be read.
int jpeg_orientation(std::span<const uint8_t> bytes);

// The same of an EXIF block (a TIFF header, perhaps behind "Exif\0\0").
int exif_orientation(std::span<const uint8_t> block);

Size oriented_size(Size stored, int orientation);

// The stored box whose pixels become `oriented` (a box of the oriented image).
Box stored_box(Box oriented, Size stored, int orientation);

// Collects the rows of a stored region and turns them. Owner: ImageDecoder. Memory: that of the
// region, kept for the next one unless it is large.
class OrientingSink final : public RowSink {
 public:
  void begin(Size stored_region, int orientation);
  void rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) override;
  ImageView oriented() const;  // after the last row
  void end();                  // the pixels are not needed any more
  int64_t scratch_bytes() const { return static_cast<int64_t>(pixels_.capacity()); }

 private:
  Size stored_;
  int orientation_ = 1;
  int row_ = 0;
  std::vector<uint8_t> pixels_;  // (oriented height, oriented width, 3) u8
};

}  // namespace stoker
