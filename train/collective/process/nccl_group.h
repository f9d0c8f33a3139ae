// Processes on GPUs without MPI, started by torchrun or srun. They meet at an address from the
// environment and communicate through NCCL, one GPU each. Messages go through the GPU, in one order
// with the sums of gradients, so waiting for an answer also waits for the sums before it. Threads:
// see process_group.h. A process that fails cannot send the reason to the others: they end when
// NCCL notices, or when the launcher ends them.
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
  // Makes a collective of one replica per process, which is on this GPU. The first `bf16_floats` of
  // a buffer travel as bf16.
  virtual std::unique_ptr<Collective> make_collective(const DeviceReplica& replica,
                                                      int64_t bf16_floats,
                                                      std::shared_ptr<Ranks> ranks) = 0;
  NcclGroup* nccl() final { return this; }
};

// Returns whether the processes of `launch` on these devices (Device::name()) meet through NCCL:
// they do if torchrun or srun started them, they use GPUs, and there is an address.
bool meets_through_nccl(const Launch& launch, const std::vector<std::string>& devices);

// Returns when all processes have joined. Throws std::invalid_argument unless there is exactly one
// device, std::runtime_error with what is missing or NCCL's reason. Sets NCCL_COMM_ID in this
// process's environment: call it before there are other threads.
std::unique_ptr<ProcessGroup> open_nccl_group(const Launch& launch,
                                              const std::vector<std::string>& devices);

}  // namespace stoker
