// Converts between PyTorch's order of parameters (parameter_table) and a device engine's flat
// buffers, in which the weights of convolutions are OHWI with the input's padding channels, which
// stay 0. Pure; any thread.
#pragma once

#include <span>

#include "train/graph/gradient_layout.h"

namespace stoker {

void to_device_order(const GradientLayout& layout, std::span<const TensorInfo> table,
                     std::span<const float> values, std::span<float> flat);
void from_device_order(const GradientLayout& layout, std::span<const TensorInfo> table,
                       std::span<const float> flat, std::span<float> values);

}  // namespace stoker
