// What the device engine's kernels fuse, and their precision, for train/graph. Values.
#pragma once

#include "train/device/tuning.h"
#include "train/engine/precision.h"
#include "train/graph/lowering.h"

namespace stoker {

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
