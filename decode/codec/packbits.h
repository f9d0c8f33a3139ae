// PackBits (TIFF 6.0, section 9): runs of bytes, each as it is or one byte again and again. The
// runs go on from one read to the next, because not all writers end them with each row, as they
// should.
//
// Owner: a reader of one strip or tile. Threads: one at a time. Memory: none.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

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

}  // namespace stoker
