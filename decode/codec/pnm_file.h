// Netpbm files (PBM, PGM, PPM): the layout of the pixels, and their rows as RGB. Internal to
// CodecDecoder.
//
// The six kinds are read as Pillow's convert("RGB") gives them: values up to `most` are scaled to
// 255 in double precision and rounded to even, those of gray files with more than 8 bits are scaled
// to 65535 and clipped to 255 (Pillow's mode "I").
//
// Binary rows are read in place. Text is read from the first row on, for only the numbers before it
// say where a row is. Threads: one at a time. Memory: none. Errors: a status.
#pragma once

#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

struct PnmLayout {
  Size size;
  int channels = 3;  // 1: bilevel or gray (P1, P2, P4, P5); 3: RGB (P3, P6)
  bool is_text = false;
  bool is_bilevel = false;  // P1, P4: 1 is black
  int most = 255;           // the largest value
  int64_t pixels_at = 0;

  int64_t row_samples() const { return int64_t{size.width} * channels; }
  // Bytes of a binary row: bilevel ones are padded to whole bytes.
  int64_t row_bytes() const;
};

// Accepts "P1" to "P6", and the other Netpbm formats, which read_pnm_layout() refuses by name.
bool is_pnm(std::span<const uint8_t> bytes);

DecodeStatus read_pnm_layout(std::span<const uint8_t> bytes, PnmLayout& layout);

// Checks that there are as many bytes as the pixels take, in text at least.
DecodeStatus check_pnm_body(std::span<const uint8_t> bytes, const PnmLayout& layout);

class PnmRows {
 public:
  // REQUIRES: check_pnm_body() found no fault.
  PnmRows(std::span<const uint8_t> bytes, const PnmLayout& layout)
      : bytes_(bytes), layout_(layout), at_(static_cast<size_t>(layout.pixels_at)) {}

  // Writes columns [x, x + width) of a row as RGB. Returns false if text ends too early or has
  // something else than numbers up to `most`. REQUIRES: rows are asked for from the top.
  bool read(int y, int x, int width, uint8_t* to);
  DecodeStatus status() const { return status_; }

 private:
  bool read_text_row(int x, int width, uint8_t* to);
  void read_binary_row(int y, int x, int width, uint8_t* to) const;
  bool next_number(int& value);
  bool next_bit(int& value);
  bool fail(DecodeCode code, const char* what);
  uint8_t scaled(int value) const;

  const std::span<const uint8_t> bytes_;
  const PnmLayout layout_;
  size_t at_;         // of the next number of a text
  int next_row_ = 0;  // of a text
  DecodeStatus status_;
};

}  // namespace stoker
