// Runs the CUDA plugin's kernels and CudaOps on the CPU, compiled from their own sources against
// tests/support/cuda_emulator/. Convolutions and matrix products, which are libraries' on a GPU,
// are host_ops.h's loops.
#pragma once

#include "train/device/engine.h"

namespace stoker {

DeviceOpsFactory emulated_cuda_ops_factory();

}  // namespace stoker
