// EXIF orientation: reads it from untrusted bytes, and turns pixels by it as
// PIL.ImageOps.exif_transpose does. "Stored" is the order of the pixels in the file, "oriented" the
// order in which a viewer shows them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/byte_reader.h"
#include "decode/image.h"
#include "decode/resize/row_resizer.h"
#include "decode/scratch_vector.h"

namespace stoker {

// Returns the orientation (1..8) from the first APP1 "Exif" segment of a JPEG file; 1 if there is
// none or if it cannot be read.
int jpeg_orientation(std::span<const uint8_t> bytes);

// Returns the same from an EXIF block (a TIFF header, perhaps after "Exif\0\0").
int exif_orientation(std::span<const uint8_t> block);

// Returns what the entry of a directory (of EXIF or TIFF; of BigTIFF if `is_big`) at `entry` says:
// its first value, if its type is an integer that Pillow takes, which BYTE is not; 1 for anything
// else.
int entry_orientation(ByteReader& reader, size_t entry, bool is_big);

Size oriented_size(Size stored, int orientation);

// Returns the stored box whose pixels become `oriented` (a box of the oriented image).
Box stored_box(Box oriented, Size stored, int orientation);

// Collects the rows of a stored region and turns them. Owner: ImageDecoder. Memory: the pixels of
// the region, kept for the next one unless it is large.
class OrientingSink final : public RowSink {
 public:
  void begin(Size stored_region, int orientation);
  void rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) override;
  ImageView oriented() const;  // call it after the last row
  void end();                  // releases the pixels if they are many
  int64_t scratch_bytes() const { return static_cast<int64_t>(pixels_.capacity()); }

 private:
  Size stored_;
  int orientation_ = 1;
  int row_ = 0;
  ScratchVector<uint8_t> pixels_;  // (oriented height, oriented width, 3) u8
};

}  // namespace stoker
