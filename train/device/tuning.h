// Options of a device engine that do not change what it computes (except for the order of sums). A
// value.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

// conv-plans.bin in the cache folder; "" if there is no such folder.
std::string default_plan_cache();

struct DeviceTuning {
  bool graphs = true;         // capture steps after the first
  int input_channels = 8;     // the input is padded to these if only convolutions read it
  bool deterministic = true;  // the same bits in every run with the same plans
  // Time the convolutions' plans and use the fastest. Another run may choose other plans, unless it
  // finds these in the plan cache.
  bool autotune = true;
  int64_t workspace_limit = int64_t{512} << 20;  // bytes, of one convolution
  // The file that stores which plans were the fastest, so that the next process need not time them;
  // "": none. All GPUs and nets share it. It may be deleted at any time.
  std::string plan_cache = default_plan_cache();
};

}  // namespace stoker
