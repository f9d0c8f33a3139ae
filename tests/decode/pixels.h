// Pixels for the decode tests: an owned image, reproducible noise, and the hash of golden files.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "decode/crop_spec.h"
#include "decode/image.h"

namespace stoker {

// An owned RGB image whose rows may be further apart than they are wide; the gap is poisoned, so
// that a test notices writes into it.
class Pixels {
 public:
  static constexpr uint8_t kPoison = 0xA5;

  explicit Pixels(Size size, int gap_bytes = 0)
      : size_(size),
        stride_(3 * size.width + gap_bytes),
        bytes_(static_cast<size_t>(stride_) * size.height, kPoison) {}

  MutableImageView view() { return {bytes_.data(), size_.width, size_.height, stride_}; }
  ImageView view() const { return {bytes_.data(), size_.width, size_.height, stride_}; }
  Size size() const { return size_; }
  const uint8_t* pixel(int x, int y) const { return bytes_.data() + y * stride_ + 3 * x; }
  uint8_t* pixel(int x, int y) { return bytes_.data() + y * stride_ + 3 * x; }

  bool gaps_intact() const {
    for (int y = 0; y < size_.height; ++y) {
      for (ptrdiff_t i = 3 * size_.width; i < stride_; ++i) {
        if (bytes_[y * stride_ + i] != kPoison) return false;
      }
    }
    return true;
  }

  // The pixels without the gaps.
  std::vector<uint8_t> packed() const {
    std::vector<uint8_t> out;
    for (int y = 0; y < size_.height; ++y) {
      out.insert(out.end(), pixel(0, y), pixel(0, y) + 3 * size_.width);
    }
    return out;
  }

 private:
  Size size_;
  ptrdiff_t stride_;
  std::vector<uint8_t> bytes_;
};

// The same bytes as noise() of tests/golden/decode/make_golden.py.
inline Pixels noise(Size size, uint32_t seed, int gap_bytes = 0) {
  Pixels image(size, gap_bytes);
  uint32_t state = seed * 2654435761u + 12345u;
  for (int y = 0; y < size.height; ++y) {
    for (int i = 0; i < 3 * size.width; ++i) {
      state = state * 1664525u + 1013904223u;
      image.pixel(0, y)[i] = static_cast<uint8_t>(state >> 24);
    }
  }
  return image;
}

inline std::string fnv1a(const std::vector<uint8_t>& bytes) {
  uint64_t value = 0xCBF29CE484222325u;
  for (const uint8_t byte : bytes) value = (value ^ byte) * 0x100000001B3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

inline std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reads the columns of a golden file that make a CropSpec.
template <class Stream>
CropSpec read_spec(Stream& in) {
  CropSpec s;
  int flip = 0, filter = 0;
  in >> s.crop.x >> s.crop.y >> s.crop.width >> s.crop.height >> s.resized.width >>
      s.resized.height >> s.window.x >> s.window.y >> s.window.width >> s.window.height >> flip >>
      filter;
  s.flip = flip != 0;
  s.filter = static_cast<Filter>(filter);
  return s;
}

// Returns a crop without resize and flip.
inline CropSpec plain_crop(Box box) {
  return {box, {box.width, box.height}, {0, 0, box.width, box.height}, false, Filter::bilinear};
}

}  // namespace stoker
