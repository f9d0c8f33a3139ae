// What the device engine's kernels fuse, and their precision, for train/graph. Values.
#pragma once

#include <string>

#include "train/device/tuning.h"
#include "train/engine/precision.h"
#include "train/graph/lowering.h"

namespace stoker {

// The batch norm's kernels include whatever follows it. Each fusion saves a pass over memory, which
// is what limits their speed.
inline FusionRules device_fusion(const DeviceTuning& tuning) {
  return {.gelu_in_norm = true, .residual_in_norm = true, .input_channels = tuning.input_channels};
}

// Returns why the device engine cannot run a net, or "". Its operations do not yet include
// concatenations, dropout, tanh, sigmoid, average pools but the global one, rectangular kernels,
// auxiliary heads, binary losses and gray input; the CPU engine has all of them.
std::string device_gap(const NetSpec& net);

// cuDNN writes gradients in the type of the convolution. A GPU's matrix units need bf16, also in
// the head, which is large for a thousand classes.
inline constexpr PrecisionRules kDevicePrecision{true, true};

}  // namespace stoker
