// Runs a convolution as the one that its shape is folded to (fold_shape.h). Owner: the step that
// runs it. Threads: see DeviceConv.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "train/cuda/fold_shape.h"
#include "train/device/ops.h"

namespace stoker {

// Returns a convolution of shape.plain, without a gradient of its input, by `inner`, which is one
// of shape.folded. Its workspace begins with the folded pixels and weights.
std::unique_ptr<DeviceConv> make_folded_conv(cudaStream_t stream, const FoldedShape& shape,
                                             std::unique_ptr<DeviceConv> inner);

}  // namespace stoker
