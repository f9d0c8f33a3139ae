// Reads the first directory of a TIFF or BigTIFF file: its size, how its samples must be read to
// give Pillow's colours, and where its strips or tiles lie. Internal to CodecDecoder.
//
// A part is a strip or a tile. Threads: any. Errors: a status. Memory: a few entries at most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/codec/frame.h"
#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

// A directory entry that holds integers.
struct TiffField {
  uint64_t count = 0;
  uint32_t bytes_each = 0;
  uint64_t at = 0;  // offset of the first value
};

// The values of `compression` and `photometric` that several of our files ask for.
inline constexpr uint32_t kTiffUncompressed = 1, kTiffDeflate = 8, kTiffOldDeflate = 32946;
inline constexpr uint32_t kTiffWhiteIsZero = 0;

struct TiffLayout {
  Size size;
  FrameColours colours = FrameColours::rgb;
  uint32_t photometric = 0;
  uint32_t compression = 1;
  uint32_t predictor = 1;    // 2: each sample is a difference to the one at its left
  uint32_t samples = 1;      // per pixel; the frame has the first of them
  uint32_t bits = 1;         // per sample: 1, 2, 4, 8, 16
  bool is_separate = false;  // a plane for each sample
  bool is_ycc = false;
  bool has_palette = false;
  bool is_big_endian = false;
  bool is_bit_reversed = false;  // the first pixel of a byte is in its lowest bits
  uint8_t palette[256][3] = {};  // RGB
  int orientation = 1;           // as in EXIF; Pillow always turns a TIFF by it

  bool is_tiled = false;
  Size part;  // of a strip or tile; {0, 0} if the directory does not say it
  TiffField offsets, sizes;

  // Whether libtiff makes RGB of the samples: only of JPEG's in one plane it gives RGB as lines.
  bool is_converted() const;
  int parts_across() const { return (size.width - 1) / part.width + 1; }
  int parts_down() const { return (size.height - 1) / part.height + 1; }
  int64_t parts_of_a_plane() const { return int64_t{parts_across()} * parts_down(); }
  // Lines of the part whose first line is row `top`: all of a tile's, those in the picture of a
  // strip's.
  int lines_of_part(int64_t top) const;
  // For PackBits, libtiff must be asked for whole parts: it does not read on within a run.
  bool has_packed_bits() const { return compression == 32773; }
  // Bytes of one line of a part, of one plane or of all, without compression.
  int64_t line_bytes() const;
};

DecodeStatus read_tiff_layout(std::span<const uint8_t> bytes, TiffLayout& layout);

// Checks that all parts are inside the file, and that they are as many and as large as the picture
// needs, so that nothing that is made for them is larger than the plan of memory says. Afterwards
// the functions of the layout that need a part's size may be called.
DecodeStatus check_tiff_body(std::span<const uint8_t> bytes);

// The bytes of a part. REQUIRES: the body was checked, number < the count of parts.
std::span<const uint8_t> tiff_part(std::span<const uint8_t> bytes, const TiffLayout& layout,
                                   int64_t number);

// A directory that takes the place of the file's own: the same entries, but only those that
// decoding needs and without an orientation, and no directory after it. So what libtiff does for a
// tag is done a few times, however many there are.
struct TiffPatch {
  size_t at = 0;
  std::vector<uint8_t> bytes;
};
TiffPatch needed_tiff_directory(std::span<const uint8_t> bytes);

}  // namespace stoker
