// What cuDNN's fusions would save on this GPU: each fused plan beside the convolution and our own
// kernels, one after the other. A measurement for cuda_step_bench; the engine itself times only
// what it may take. Threads: one at a time; the stream's GPU is current. Errors:
// std::runtime_error.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "train/device/ops.h"
#include "train/device/tuning.h"

namespace stoker {

// An entry per shape and fusion, those included that cuDNN has no plan for.
std::vector<FusionTime> time_fusions(cudaStream_t stream, const DeviceTuning& tuning,
                                     std::span<const ConvShape> shapes);

}  // namespace stoker
