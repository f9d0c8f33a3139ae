// The kernels behind the sums over GPUs. Each queues its work; the stream's GPU is current.
// Internal to the plugin.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "train/collective/device.h"

namespace stoker {

cudaError_t launch_sum_parts(cudaStream_t stream, const PartSum& sum);
// fp32 to bf16, nearest with ties to even, and back.
cudaError_t launch_cast_to_bf16(cudaStream_t stream, const float* from, uint16_t* to,
                                int64_t count);
cudaError_t launch_cast_to_fp32(cudaStream_t stream, const uint16_t* from, float* to,
                                int64_t count);

}  // namespace stoker
