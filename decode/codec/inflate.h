// Decodes a zlib stream (RFC 1950 and 1951) as far as its reader wants it. Internal to the codecs.
//
// The compressed bytes may lie in several pieces, as PNG's do. The output is a window: the 32 KiB
// that matches may reach back to, and what was decoded and not read yet. So memory does not grow
// with the picture, and nothing behind the last byte that is wanted is decoded.
//
// How it is fast: one lookup of 11 bits finds up to two literals, which are most of a photograph's
// symbols, or a length with its extra bits; bits are refilled with one unaligned load and no
// branch. The ends of the pieces go through a loop that checks every bit.
//
// A decoder keeps no state between files: begin() forgets the stream before. Owner: one reader.
// Threads: one at a time. Errors: read() returns nullptr, and fault() says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/aligned_buffer.h"

namespace stoker {

enum class InflateFault : uint8_t { none, cut_short, broken };

// Where the compressed bytes come from.
class InflateInput {
 public:
  virtual ~InflateInput() = default;
  // Gives the next piece, which may be empty, and outlives the stream. Returns false at the end.
  virtual bool next(std::span<const uint8_t>& piece) = 0;
};

class Inflater {
 public:
  struct Plan {
    size_t most_at_once;  // bytes that one read() asks for
    uint64_t total;       // bytes that all of them ask for: not many more are decoded
    bool sums = false;    // whether ends_well() will be asked
  };

  // Begins a stream; `input` outlives its use.
  void begin(InflateInput& input, const Plan& plan);
  // Returns the next `count` bytes, valid until the next call; nullptr if the stream does not have
  // them.
  const uint8_t* read(size_t count);
  // Decodes the rest of the stream. Returns true if it ends with a checksum (Adler-32), which is
  // that of the bytes that were read if there were no more.
  bool ends_well();
  bool had_more() const { return has_more_; }  // as ends_well() found
  InflateFault fault() const { return fault_; }
  // Whether the last block was decoded.
  bool is_at_end() const { return part_ == Part::end; }

  int64_t scratch_bytes() const { return window_.bytes(); }
  void release() { window_.release(); }

 private:
  static constexpr int kLiteralBits = 11, kDistanceBits = 8, kMaxBits = 15;
  static constexpr size_t kLiterals = 288, kDistances = 32;
  // Every subtable is for two codes at least, and has 2^(15 - bits of the table) entries at most.
  static constexpr size_t kLiteralEntries =
      (size_t{1} << kLiteralBits) + (kLiterals / 2 << (kMaxBits - kLiteralBits));
  static constexpr size_t kDistanceEntries =
      (size_t{1} << kDistanceBits) + (kDistances / 2 << (kMaxBits - kDistanceBits));
  enum class Part : uint8_t { stream_header, block_header, stored, codes, end };

  void make_room(size_t count);
  void run(uint8_t* limit);
  bool fill(int bits);
  bool take(int bits, uint32_t& value);
  bool fail(InflateFault fault);
  bool read_stream_header();
  bool read_block_header();
  bool make_fixed_tables();
  bool read_code_lengths();
  bool make_tables(size_t literals, size_t distances);
  void copy_stored(const uint8_t* limit);
  bool take_symbol(const uint32_t* table, int table_bits, uint32_t& entry);
  void run_one();
  void run_fast(const uint8_t* limit);

  InflateInput* input_ = nullptr;
  const uint8_t* in_ = nullptr;
  const uint8_t* in_end_ = nullptr;
  uint64_t bits_ = 0;  // the next bit is the lowest
  int count_ = 0;      // how many bits of bits_ are valid

  Plan plan_{};
  uint64_t decoded_ = 0;  // bytes in all
  AlignedBuffer<uint8_t> window_;
  uint8_t* begin_ = nullptr;
  size_t room_ = 0;             // bytes of the window that may be filled; a match may end behind
  uint8_t* read_at_ = nullptr;  // what was decoded and not read
  uint8_t* out_ = nullptr;      // where decoding goes on

  Part part_ = Part::stream_header;
  bool is_last_block_ = false;
  uint32_t stored_left_ = 0;
  InflateFault fault_ = InflateFault::none;
  bool has_more_ = false;
  uint32_t sum_ = 1;
  uint32_t discarded_ = 0;  // the bits before a whole byte

  uint8_t lengths_[kLiterals + kDistances];  // of the codes of this block
  uint32_t literal_table_[kLiteralEntries];
  uint32_t distance_table_[kDistanceEntries];
};

}  // namespace stoker
