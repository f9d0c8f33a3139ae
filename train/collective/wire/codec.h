// How a block of gradients is written for the wire, and read, and where the blocks of a buffer lie.
// Pure; any thread. Every byte follows from the values and, for int8, from a key.
//
// bf16: the nearest value, ties to even; NaN stays NaN.
// int8: a scale (fp32), the largest magnitude / 127, then a signed byte per value. A value is
//   rounded up with the probability of its fraction, so that its mean is the value itself
//   (Alistarh et al., "QSGD", 2017, section 3.1, with one level per step of the scale).
// 1bit: the mean of the values from 0 up and the mean of those below (fp32 each), then a bit per
//   value, 8 to a byte from the lowest up, 1 for a value from 0 up (Seide et al., "1-bit stochastic
//   gradient descent", Interspeech 2014, section 3.1; there a block is a column of weights).
//
// A block of int8 or 1bit with a value that is not finite is read as NaN throughout, so that the
// check for finite gradients finds it in every replica. Blocks are small enough that the values of
// one layer do not set the scale of many others, and large enough that scales are a small part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "train/collective/collective.h"
#include "train/collective/wire/grad_wire.h"

namespace stoker {

// The most values of a block; only the last block of a buffer has fewer.
constexpr int64_t block_floats(GradWire wire) { return wire == GradWire::one_bit ? 256 : 1024; }
constexpr int64_t kMaxBlockFloats = 1024;

// Size of a block of `count` values on the wire.
constexpr int64_t block_bytes(GradWire wire, int64_t count) {
  switch (wire) {
    case GradWire::bf16:
      return 2 * count;
    case GradWire::int8:
      return 4 + count;
    case GradWire::one_bit:
      return 8 + (count + 7) / 8;
    case GradWire::fp32:
      break;
  }
  return 4 * count;
}

// The key of int8's stochastic rounding, besides the place of a value in its buffer.
struct WireKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int sender = 0;    // a rank, of all processes
  bool sum = false;  // the sender's own gradients, or its share of their sum
};

// Writes block_bytes() bytes. `first` is the place of values[0] in its buffer, a multiple of 8.
void encode_block(GradWire wire, const WireKey& key, int64_t first, std::span<const float> values,
                  std::byte* bytes);
void decode_block(GradWire wire, const std::byte* bytes, std::span<float> values);

// A gradient buffer as it travels: its gradients in blocks of the wire's format, then its moments
// and step metrics in blocks of fp32. Replicas that sum parts of a buffer take whole blocks. A
// value.
class WireLayout {
 public:
  // The first `gradients` of `floats` are gradients.
  WireLayout(GradWire wire, int64_t gradients, int64_t floats);

  struct Block {
    BufferRange range;  // of the buffer
    GradWire wire = GradWire::fp32;
    size_t count() const { return static_cast<size_t>(range.end - range.begin); }
  };
  int64_t floats() const { return floats_; }
  int64_t gradients() const { return gradients_; }
  int64_t blocks() const { return gradient_blocks_ + rest_blocks_; }
  int64_t gradient_blocks() const { return gradient_blocks_; }
  Block block(int64_t index) const;
  // Where a block begins on the wire; that of blocks() is the size of all.
  int64_t byte_of(int64_t block) const;
  int64_t bytes() const { return byte_of(blocks()); }

  // The first block that `rank` of `size` sums; those of rank `size` begin at the end.
  int64_t share_of(int rank, int size) const { return blocks() * rank / size; }

 private:
  const GradWire wire_;
  const int64_t gradients_, floats_;
  const int64_t gradient_blocks_, rest_blocks_;
};

}  // namespace stoker
