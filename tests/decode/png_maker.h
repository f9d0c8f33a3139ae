// Makes PNG files of every kind from random pixels: row filters by chance, the data in chunks of
// any size. Shares no code with the reader; zlib deflates.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"

namespace stoker {

struct PngKind {
  Size size{20, 20};
  int colours = 2;  // PNG's colour type: 0, 2, 3, 4, 6
  int bits = 8;
  bool is_interlaced = false;
  int level = 6;          // zlib's
  int strategy = 0;       // zlib's
  size_t piece = 0;       // bytes of a chunk of pixels; 0: one chunk
  int filter = -1;        // of all rows; -1: by chance
  int palette = 0;        // colours of the palette; 0: as many as the bits can name
  bool is_smooth = true;  // pixels like those of a picture, not noise
};

std::vector<uint8_t> make_png(const PngKind& kind, uint32_t seed);

// The filtered rows, before they are deflated.
std::vector<uint8_t> make_png_rows(const PngKind& kind, uint32_t seed);

// A file of these chunks. A PNG is the header's, those of pixels, and the end.
struct PngChunk {
  std::string name;
  std::vector<uint8_t> data;
};
std::vector<uint8_t> join_png(const std::vector<PngChunk>& chunks);
// The chunks of a file, as far as they are whole.
std::vector<PngChunk> split_png(std::span<const uint8_t> file);

std::vector<uint8_t> deflate(std::span<const uint8_t> bytes, int level, int strategy);

}  // namespace stoker
