// A gradient buffer as it travels: its gradients in blocks of the wire's format, then its moments
// and step metrics in blocks of fp32. Replicas that sum parts of a buffer take whole blocks. A
// value; pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "train/collective/collective.h"
#include "train/collective/wire/codec.h"

namespace stoker {

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
