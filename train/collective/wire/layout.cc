#include "train/collective/wire/layout.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace stoker {
namespace {

int64_t wire_blocks(GradWire wire, int64_t floats) {
  return (floats + block_floats(wire) - 1) / block_floats(wire);
}

}  // namespace

WireLayout::WireLayout(GradWire wire, int64_t gradients, int64_t floats)
    : wire_(wire),
      gradients_(gradients),
      floats_(floats),
      gradient_blocks_(wire_blocks(wire, gradients)),
      rest_blocks_(wire_blocks(GradWire::fp32, floats - gradients)) {
  if (gradients < 0 || gradients > floats) {
    throw std::invalid_argument("gradients on the wire: " + std::to_string(gradients) + " of " +
                                std::to_string(floats) + " floats");
  }
}

WireLayout::Block WireLayout::block(int64_t index) const {
  const bool gradient = index < gradient_blocks_;
  const GradWire wire = gradient ? wire_ : GradWire::fp32;
  const int64_t size = block_floats(wire);
  const int64_t begin = gradient ? index * size : gradients_ + (index - gradient_blocks_) * size;
  return {{begin, std::min(begin + size, gradient ? gradients_ : floats_)}, wire};
}

int64_t WireLayout::byte_of(int64_t block) const {
  const int64_t size = block_floats(wire_);
  if (block < gradient_blocks_) return block * block_bytes(wire_, size);
  int64_t bytes = 0;
  if (gradient_blocks_ > 0) {
    bytes = (gradient_blocks_ - 1) * block_bytes(wire_, size) +
            block_bytes(wire_, gradients_ - (gradient_blocks_ - 1) * size);
  }
  const int64_t rest = (block - gradient_blocks_) * block_floats(GradWire::fp32);
  return bytes + block_bytes(GradWire::fp32, std::min(rest, floats_ - gradients_));
}

}  // namespace stoker
