// The kernels for the sums over GPUs. Each function queues its kernel; the stream's GPU must be
// current. Internal to the plugin.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "train/collective/device.h"

namespace stoker {

cudaError_t launch_sum_buffers(cudaStream_t stream, const BufferSum& sum);
// Cast fp32 to bf16 (nearest, ties to even) and back.
cudaError_t launch_cast_to_bf16(cudaStream_t stream, const float* from, uint16_t* to,
                                int64_t count);
cudaError_t launch_cast_to_fp32(cudaStream_t stream, const uint16_t* from, float* to,
                                int64_t count);

}  // namespace stoker
