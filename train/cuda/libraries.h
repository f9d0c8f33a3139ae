// cuDNN and cuBLASLt for the device engine. Part of the plugin.
// Owner: CudaOps. Threads: one at a time; the stream's GPU is current. Errors: std::runtime_error.
#pragma once

#include <memory>

#include "train/cuda/ops.h"

namespace stoker {

std::unique_ptr<CudaLibraries> make_cuda_libraries(cudaStream_t stream, const DeviceTuning& tuning);

}  // namespace stoker
