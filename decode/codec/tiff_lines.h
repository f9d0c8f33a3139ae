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

// PackBits (TIFF 6.0, section 9): runs of bytes, each as it is or one byte again and again. The
// runs go on from one read to the next, because not all writers end them with each row, as they
// should.
class PackBits {
 public:
  // The bytes must live as long as they are read. `is_bit_reversed`: each has its bits in the other
  // order.
  void begin(std::span<const uint8_t> bytes, bool is_bit_reversed);
  // Writes the next `count` bytes. Returns false if there are not so many.
  bool read(uint8_t* to, int64_t count);
  // Returns true if the last run is longer than what was read.
  bool had_more() const { return run_ > 0; }

 private:
  bool next(uint8_t& byte);

  std::span<const uint8_t> bytes_;
  bool is_bit_reversed_ = false;
  int run_ = 0;  // bytes that are left of it
  bool is_repeated_ = false;
  uint8_t value_ = 0;  // what is repeated
};

// Returns the byte with its bits in the other order.
uint8_t reversed_bits(uint8_t bits);

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
