#include "staging/cuda_plugin.h"

namespace stoker {

const CudaPlugin* open_cuda_plugin(std::string& problem) {
  problem = "this build has no CUDA part (nvcc was not found, or STOKER_CUDA=OFF)";
  return nullptr;
}

}  // namespace stoker
