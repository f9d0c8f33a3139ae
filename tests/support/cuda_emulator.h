// Runs the CUDA plugin's kernels and CudaOps on the CPU, compiled from their own sources with
// tests/support/cuda_emulator/. Convolutions and matrix products, which libraries compute on a GPU,
// use the loops of host_ops.h.
#pragma once

#include "train/device/engine.h"

namespace stoker {

DeviceOpsFactory emulated_cuda_ops_factory();

}  // namespace stoker
