// Launches and loads kernels. Internal to the plugins.
#pragma once

#include <cuda_runtime.h>

namespace stoker {

// kernel<<<blocks, threads, 0, stream>>>(arguments...) as a function that returns its own error:
// after <<<>>> there is only cudaGetLastError(), which may return the error of an earlier call.
template <typename... Parameters, typename... Arguments>
cudaError_t launch_kernel(cudaStream_t stream, void (*kernel)(Parameters...), dim3 blocks,
                          dim3 threads, Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

// Loads kernels onto the current GPU. Otherwise the first launch of each does, and may wait for all
// work on the GPU ("Lazy Loading" in CUDA's programming guide): for ever, if that work waits for
// the thread that launches.
template <typename... Kernels>
cudaError_t load_kernels(Kernels... kernels) {
  cudaFuncAttributes unused;
  cudaError_t error = cudaSuccess;
  ((error = error == cudaSuccess ? cudaFuncGetAttributes(&unused, kernels) : error), ...);
  return error;
}

}  // namespace stoker
