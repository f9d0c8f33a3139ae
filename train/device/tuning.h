// Options of a device engine that do not change what it computes (except for the order of sums),
// and what its kernels fuse. Values.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/files/cache_folder.h"
#include "train/engine/precision.h"
#include "train/graph/lowering.h"

namespace stoker {

// conv-plans.bin in the cache folder; "" if there is no such folder.
inline std::string default_plan_cache() {
  const std::string folder = default_cache_folder();
  return folder.empty() ? "" : folder + "/conv-plans.bin";
}

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

// The kernels of a batch norm include whatever follows it, and that of a bias the activation. Each
// fusion saves a pass over memory, which is what limits their speed.
inline FusionRules device_fusion(const DeviceTuning& tuning) {
  return {.gelu_in_norm = true,
          .residual_in_norm = true,
          .activation_in_conv = true,
          .input_channels = tuning.input_channels};
}

// cuDNN writes gradients in the type of the convolution. A GPU's matrix units need bf16, also in
// the head, which is large for a thousand classes.
inline constexpr PrecisionRules kDevicePrecision{true, true};

}  // namespace stoker
