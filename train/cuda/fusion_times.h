// Measures what cuDNN's fusions would save on this GPU: compares each fused plan with the
// convolution followed by our kernels. For cuda_step_bench; the engine itself times only the fusion
// that it may use. Threads: one at a time; the stream's GPU is current. Errors: std::runtime_error.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "train/device/ops.h"
#include "train/device/tuning.h"

namespace stoker {

// Returns one entry per shape and fusion, also if cuDNN has no plan for it.
std::vector<FusionTime> time_fusions(cudaStream_t stream, const DeviceTuning& tuning,
                                     std::span<const ConvShape> shapes);

}  // namespace stoker
