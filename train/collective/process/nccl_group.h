// Processes on GPUs without MPI around them: started by torchrun or srun, they meet at an address
// in the environment and speak through NCCL, one GPU each. What one says goes through its GPU, in
// the same order as its gradients' sums: whoever waits for an answer waits for the sums before.
// Threads: as process_group.h. A process that fails cannot tell the others why: they end when NCCL
// notices, or when the launcher ends them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/collective/device.h"
#include "train/collective/process/process_group.h"

namespace stoker {

class NcclGroup : public ProcessGroup {
 public:
  virtual int cuda_ordinal() const = 0;  // of this process's GPU
  // Sums over one replica of each process, which is on this GPU. `host` does broadcast() and
  // barrier(). bf16_floats: see CudaCollectiveOptions.
  virtual std::unique_ptr<Collective> make_collective(const DeviceReplica& replica,
                                                      int64_t bf16_floats,
                                                      std::unique_ptr<Collective> host) = 0;
  NcclGroup* nccl() final { return this; }
};

// Do the processes of `launch` on these devices (Device::name()) meet through NCCL? Those of GPUs
// that torchrun or srun started, if there is an address to meet at.
bool meets_through_nccl(const Launch& launch, const std::vector<std::string>& devices);

// Returns when all are there. Throws std::invalid_argument for another number of devices than one,
// std::runtime_error with what is missing or NCCL's reason. Sets NCCL_COMM_ID in this process's
// environment: call it before there are other threads.
std::unique_ptr<ProcessGroup> open_nccl_group(const Launch& launch,
                                              const std::vector<std::string>& devices);

}  // namespace stoker
