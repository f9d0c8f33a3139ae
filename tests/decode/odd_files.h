// Files that are odd in many ways, of all formats: what a decoder must answer the same to, whatever
// it decoded before. The tests, the fuzz target over pairs and the test of the Loader have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

struct OddFile {
  std::string name;  // says what is odd; ends as such files do (".jpg")
  std::vector<uint8_t> bytes;
};

// JPEGs that lack tables which another file could have left behind: without Huffman tables (as
// cameras write films; the standard's example tables are meant), without quantisation tables, with
// Huffman tables of their own, in one scan, in many, grey, YCbCr and CMYK; and whole ones beside.
std::vector<OddFile> jpegs_without_tables();

// The golden files of all formats, which lie in FOLDER/decode/images.
std::vector<OddFile> golden_images(const std::string& folder);

// `copies` damaged versions of a file: bits flipped (in the first bytes and anywhere), bytes
// changed, cut out, doubled and swapped, the end cut off.
std::vector<OddFile> damaged(const OddFile& file, int copies, uint32_t seed);

// A JPEG without its segments of this kind.
std::vector<uint8_t> without_segments(const std::vector<uint8_t>& jpeg, uint8_t marker);

}  // namespace stoker
