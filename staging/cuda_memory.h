// Memory of a GPU, and host memory that it copies from at full speed. Internal to the plugin.
#pragma once

#include <atomic>
#include <memory>

#include "staging/cuda_context.h"
#include "staging/device.h"

namespace stoker {

// Throws std::runtime_error: without poisoning the device when there is too little memory.
std::unique_ptr<Memory> allocate_on_gpu(const CudaContext& context, size_t bytes);

// Pinned, on the NUMA node near the GPU (-1: anywhere). Where the system refuses to lock that much,
// ordinary memory and a warning on stderr, once for each `warned`.
std::unique_ptr<Memory> allocate_pinned(const CudaContext& context, size_t bytes, int numa_node,
                                        std::atomic<bool>& warned);

}  // namespace stoker
