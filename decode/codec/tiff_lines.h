// The lines of a TIFF's strips and tiles, one after another: without compression and predictors,
// 16-bit samples in the machine's order. Internal to the codecs.
//
// StoredTiffLines takes them from where they lie in the file, inflated or unpacked if they are
// deflated or PackBits.
// Everything else is libtiff's (libtiff_reader.h).
// Owner: one TiffReader, for one file. Threads: one at a time. Errors: false, and problem().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "decode/codec/inflate.h"
#include "decode/codec/packbits.h"
#include "decode/codec/tiff_header.h"

namespace stoker {

// A strip or tile, from whose top so many lines are read.
struct TiffPart {
  int64_t number = 0;
  int top = 0;     // the row of its first line
  int lines = 0;   // that it has
  int needed = 0;  // lines that are read: 1 to `lines`
};

class TiffLines {
 public:
  virtual ~TiffLines() = default;
  virtual bool begin(const TiffPart& part) = 0;
  // Writes line_bytes() of the layout. REQUIRES: begin() returned true, fewer lines than needed
  // were read.
  virtual bool next(uint8_t* line) = 0;
  virtual std::string problem() const = 0;
};

// Memory: what the inflater takes, which does not depend on the picture.
class StoredTiffLines final : public TiffLines {
 public:
  static bool has(const TiffLayout& layout);
  StoredTiffLines(std::span<const uint8_t> bytes, const TiffLayout& layout)
      : bytes_(bytes), layout_(layout) {}

  bool begin(const TiffPart& part) override;
  bool next(uint8_t* line) override;
  std::string problem() const override;

 private:
  // All bytes of a strip or tile.
  class Input final : public InflateInput {
   public:
    explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}
    bool next(std::span<const uint8_t>& piece) override;

   private:
    std::span<const uint8_t> bytes_;
    bool is_given_ = false;
  };

  bool inflate(uint8_t* line);
  bool unpack(uint8_t* line);
  void undo_predictor(uint8_t* line) const;

  const std::span<const uint8_t> bytes_;
  const TiffLayout& layout_;
  TiffPart part_;
  int read_ = 0;                     // lines
  std::span<const uint8_t> stored_;  // of the part
  std::optional<Input> input_;
  Inflater inflater_;
  PackBits packed_;
};

}  // namespace stoker
