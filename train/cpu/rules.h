// The fusions of the CPU engine's kernels, and their precision, for train/graph. Values.
#pragma once

#include "train/engine/precision.h"
#include "train/graph/lowering.h"

namespace stoker {

// In training, oneDNN's batch norm can include only a ReLU: GELU and additions stay separate steps.
inline constexpr FusionRules kCpuFusion{
    .activation_in_conv = true, .relu_back_after_pool = true, .recalls_parts = true};

// oneDNN writes the weight gradients of bf16 convolutions in fp32. The head and the other linear
// layers are fp32: they read their master weights, of which bf16 would need copies.
inline constexpr PrecisionRules kCpuPrecision{false, false};

}  // namespace stoker
