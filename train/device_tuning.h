// What may be chosen of a device engine without changing what it computes (but for the order of
// sums). A value.
#pragma once

#include <cstdint>

namespace stoker {

struct DeviceTuning {
  bool graphs = true;         // capture steps after the first
  int input_channels = 8;     // the input is padded to these where convolutions alone read it
  bool deterministic = true;  // the same bits in every run with the same plans
  // Time the convolutions' plans at the start and take the fastest: another run may take others.
  bool autotune = true;
  int64_t workspace_limit = int64_t{512} << 20;  // bytes, of one convolution
};

}  // namespace stoker
