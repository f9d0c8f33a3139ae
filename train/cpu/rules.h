// What the CPU engine tells the graph half of its kernels. Values.
#pragma once

#include "train/engine/precision.h"
#include "train/graph/lowering.h"

namespace stoker {

// oneDNN's batch norm takes a ReLU and nothing else, in training: GELU and additions stay steps of
// their own.
inline constexpr FusionRules kCpuFusion{false, false, 3};

// oneDNN leaves the gradients of bf16 convolutions' weights in fp32. The head is small beside the
// convolutions: in fp32 it costs next to nothing on a CPU, and its rounding is spared.
inline constexpr PrecisionRules kCpuPrecision{false, false};

}  // namespace stoker
