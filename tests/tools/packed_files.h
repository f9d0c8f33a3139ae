// Shared by the tests of `stoker pack` and of its writers: pictures, and tar files as they must
// be.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "tools/data/jpeg_writer.h"

namespace stoker {

inline std::string jpeg_file(int seed, int side = 16) {
  std::vector<uint8_t> pixels(size_t{3} * side * side);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i * i / 7 + static_cast<size_t>(seed) * 31);
  }
  const std::vector<uint8_t> file = encode_jpeg({pixels.data(), side, side, 3 * side}, 90);
  return {file.begin(), file.end()};
}

inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Fills a block of zeros with fields, and its checksum.
inline std::string tar_header(const std::string& name, const std::string& octal_size, char kind,
                              const std::string& prefix = "") {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(100, 7, "0000444");
  block.replace(108, 7, "0000000");
  block.replace(116, 7, "0000000");
  block.replace(124, 11, octal_size);
  block.replace(136, 11, "00000000000");
  block.replace(148, 8, 8, ' ');
  block[156] = kind;
  block.replace(257, 8, std::string("ustar\00000", 8));
  block.replace(329, 7, "0000000");
  block.replace(337, 7, "0000000");
  block.replace(345, prefix.size(), prefix);
  int sum = 0;
  for (const char c : block) sum += static_cast<uint8_t>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", static_cast<unsigned>(sum));
  block.replace(148, 7, digits, 7);
  return block;
}

inline std::string in_blocks(std::string content) {
  content.resize((content.size() + 511) / 512 * 512);
  return content;
}

// Decodes the whole image.
inline std::vector<uint8_t> pixels_of(std::span<const uint8_t> file) {
  ImageDecoder decoder;
  ImageInfo info;
  EXPECT_TRUE(decoder.info(file, info).ok());
  EXPECT_EQ(info.format, ImageFormat::png);
  const auto [width, height] = info.size;
  std::vector<uint8_t> pixels(size_t{3} * width * height);
  const CropSpec whole{{0, 0, width, height}, info.size, {0, 0, width, height}};
  EXPECT_TRUE(decoder.decode(file, whole, {pixels.data(), width, height, 3 * width}).ok());
  return pixels;
}

}  // namespace stoker
