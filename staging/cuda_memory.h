// GPU memory, and host memory from which it copies at full speed. Internal to the plugin.
#pragma once

#include <atomic>
#include <memory>

#include "staging/cuda_context.h"
#include "staging/device.h"

namespace stoker {

// Throws std::runtime_error; too little memory does not make the device fail.
std::unique_ptr<Memory> allocate_on_gpu(const CudaContext& context, size_t bytes);

// Allocates pinned memory on the NUMA node near the GPU (-1: anywhere). If the system refuses to
// lock that much, allocates ordinary memory and prints a warning on stderr, once for each `warned`.
std::unique_ptr<Memory> allocate_pinned(const CudaContext& context, size_t bytes, int numa_node,
                                        std::atomic<bool>& warned);

}  // namespace stoker
