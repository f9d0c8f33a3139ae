// Turns the rows of a PNG into labels (label_image.h has the rules). Internal to the PNG reader.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>

#include "decode/codec/png_file.h"
#include "decode/codec/png_row_format.h"

namespace stoker {

class PngLabels final : public PngRowFormat {
 public:
  // Prepares for one file. Returns "", or why its pixels are no labels of so many bytes (1 or 4).
  std::string begin(const PngHeader& header, int label_bytes);
  size_t pixel_bytes() const override { return static_cast<size_t>(label_bytes_); }
  bool is_as_stored() const override { return label_bytes_ == 1 && bits_ == 8; }
  void write(const uint8_t* row, int x, int width, uint8_t* to) const override;

 private:
  void write_wide(const uint8_t* row, int x, int width, uint8_t* to) const;
  int32_t small_label(const uint8_t* row, int x) const;

  int label_bytes_ = 1;
  int bits_ = 8;  // of a pixel
  int step_ = 1;  // from one label to the next, of a pixel with less than 8 bits
};

}  // namespace stoker
