#include "decode/codec/png_labels.h"

#include <cstring>

namespace stoker {

std::string PngLabels::begin(const PngHeader& header, int label_bytes) {
  label_bytes_ = label_bytes;
  bits_ = header.pixel_bits();
  // Pillow's modes: "P" and "1" have whole numbers from 0 on, "L" shades of gray up to 255.
  const bool is_scaled = header.colours == PngColours::gray && (bits_ == 2 || bits_ == 4);
  step_ = is_scaled ? 255 / ((1 << bits_) - 1) : 1;
  switch (header.colours) {
    case PngColours::gray_alpha:
    case PngColours::rgb_alpha:
      return "a label image with alpha";
    case PngColours::rgb:
      if (header.bits != 8) return "a label image of RGB with 16 bits";
      if (label_bytes == 1) return "a label image of RGB, where labels have one byte";
      return "";
    case PngColours::gray:
    case PngColours::palette:
      if (bits_ == 16 && label_bytes == 1) {
        return "a label image with 16 bits, where labels have one byte";
      }
      return "";
  }
  return "";
}

void PngLabels::write(const uint8_t* row, int x, int width, uint8_t* to) const {
  if (label_bytes_ != 1) {
    write_wide(row, x, width, to);
  } else if (bits_ == 8) {
    std::memcpy(to, row + x, static_cast<size_t>(width));
  } else {
    for (int i = 0; i < width; ++i) to[i] = static_cast<uint8_t>(small_label(row, x + i));
  }
}

void PngLabels::write_wide(const uint8_t* row, int x, int width, uint8_t* to) const {
  const uint8_t* from = row + static_cast<size_t>(x) * static_cast<size_t>(bits_) / 8;
  for (int i = 0; i < width; ++i, from += bits_ / 8) {
    int32_t label = 0;
    if (bits_ < 8) {
      label = small_label(row, x + i);
    } else if (bits_ == 8) {
      label = from[0];
    } else if (bits_ == 16) {
      label = from[0] << 8 | from[1];
    } else {
      label = from[0] | from[1] << 8 | from[2] << 16;
    }
    std::memcpy(to + sizeof label * static_cast<size_t>(i), &label, sizeof label);
  }
}

int32_t PngLabels::small_label(const uint8_t* row, int x) const {
  const auto bit = static_cast<size_t>(x) * static_cast<size_t>(bits_);
  const auto shift = 8 - bits_ - static_cast<int>(bit % 8);
  return (row[bit / 8] >> shift & ((1 << bits_) - 1)) * step_;
}

}  // namespace stoker
