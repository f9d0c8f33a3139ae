// kernel<<<blocks, threads, 0, stream>>>(arguments...) as a function that returns its own error:
// after <<<>>> there is only cudaGetLastError(), which may return the error of an earlier call.
// Internal to the plugins.
#pragma once

#include <cuda_runtime.h>

namespace stoker {

template <typename... Parameters, typename... Arguments>
cudaError_t launch_kernel(cudaStream_t stream, void (*kernel)(Parameters...), dim3 blocks,
                          dim3 threads, Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

}  // namespace stoker
