// Makes JPEG files of every kind with libjpeg itself, and decodes them fully with libjpeg, as the
// oracle of region decoding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decode/image.h"
#include "tests/decode/pixels.h"

namespace stoker {

enum class JpegColours { gray, ycc, rgb, cmyk, ycck };

struct JpegKind {
  JpegColours colours = JpegColours::ycc;
  int quality = 85;
  // Sampling factors of the first component; the others have 1x1 (for YCCK, K has the first's).
  int sampling_x = 1;
  int sampling_y = 1;
  bool progressive = false;
  bool arithmetic = false;
  bool interleaved = true;   // false: a scan per component, not progressive
  int restart_rows = 0;      // MCU rows between restart markers
  int scans_kept = 0;        // progressive only: how many scans are written; 0 = all
  int exif_orientation = 0;  // 0 = no APP1
  bool exif_big_endian = false;
};

std::string describe(const JpegKind& kind);

// Encodes generated pixels of this size.
std::vector<uint8_t> make_jpeg(Size size, const JpegKind& kind, uint32_t seed = 1);

// Decodes the whole file with libjpeg and converts it to RGB with Pillow's rules. Ignores warnings,
// as Pillow does.
Pixels decode_whole_jpeg(std::span<const uint8_t> bytes);

// Returns the file with another size in its header.
std::vector<uint8_t> with_size(std::vector<uint8_t> jpeg, Size size);

}  // namespace stoker
