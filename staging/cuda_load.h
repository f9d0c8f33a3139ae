// Loads kernels onto the current GPU. Otherwise the first launch of each does, and may wait for all
// work on the GPU ("Lazy Loading" in CUDA's programming guide): for ever, if that work waits for
// the thread that launches. Internal to the plugins.
#pragma once

#include <cuda_runtime.h>

namespace stoker {

template <typename... Kernels>
cudaError_t load_kernels(Kernels... kernels) {
  cudaFuncAttributes unused;
  cudaError_t error = cudaSuccess;
  ((error = error == cudaSuccess ? cudaFuncGetAttributes(&unused, kernels) : error), ...);
  return error;
}

}  // namespace stoker
