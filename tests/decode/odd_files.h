// Unusual files of all formats, for which a decoder must give the same result, whatever it decoded
// before. The tests, the fuzz target for pairs and the test of the Loader use them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

struct OddFile {
  std::string name;  // describes what is unusual; ends as such files do (".jpg")
  std::vector<uint8_t> bytes;
};

// JPEGs that lack tables which another file could have left behind: without Huffman tables (as in
// motion JPEG of cameras; the standard's example tables are meant), without quantisation tables,
// with their own Huffman tables, in one scan, in many, grey, YCbCr and CMYK; and complete ones as
// well.
std::vector<OddFile> jpegs_without_tables();

// The golden files of all formats, in FOLDER/decode/images.
std::vector<OddFile> golden_images(const std::string& folder);

// Makes `copies` damaged versions of a file: bits flipped (in the first bytes and anywhere), bytes
// changed, cut out, doubled and swapped, the end cut off.
std::vector<OddFile> damaged(const OddFile& file, int copies, uint32_t seed);

// Returns a JPEG without its segments of this kind.
std::vector<uint8_t> without_segments(const std::vector<uint8_t>& jpeg, uint8_t marker);

}  // namespace stoker
