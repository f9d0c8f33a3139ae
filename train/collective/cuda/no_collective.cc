#include <stdexcept>

#include "train/collective/cuda/collective.h"

namespace stoker {

std::unique_ptr<Collective> make_cuda_collective(std::span<const DeviceReplica>,
                                                 CudaCollectiveOptions) {
  throw std::runtime_error("this build cannot sum over GPUs: nvcc, cuDNN or NCCL was not found");
}

bool meets_through_nccl(const Launch&, const std::vector<std::string>&) { return false; }

std::unique_ptr<ProcessGroup> open_nccl_group(const Launch&, const std::vector<std::string>&) {
  throw std::runtime_error("this build cannot speak through NCCL: it was not found");
}

}  // namespace stoker
