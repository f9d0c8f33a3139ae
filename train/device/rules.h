// What the device engine tells the graph half of its kernels. Values.
#pragma once

#include "train/device/tuning.h"
#include "train/engine/precision.h"
#include "train/graph/lowering.h"

namespace stoker {

// The batch norm's own kernels take whatever stands behind it: a pass over memory is saved each
// time, and that is what bounds them.
inline FusionRules device_fusion(const DeviceTuning& tuning) {
  return {true, true, tuning.input_channels};
}

// cuDNN writes gradients in the type of the convolution. A GPU's matrix units want bf16, in the
// head too, which is large for a thousand classes.
inline constexpr PrecisionRules kDevicePrecision{true, true};

}  // namespace stoker
