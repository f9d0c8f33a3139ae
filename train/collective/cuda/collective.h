// Sums over replicas on GPUs, in one of several ways (ReduceKind). The code that needs CUDA is in
// the plugin of the CUDA engine, which is opened here. Threads: see train/collective/collective.h;
// one thread constructs. Errors: std::runtime_error with what is missing and why;
// std::invalid_argument for a way that the devices do not allow.
#pragma once

#include <memory>
#include <span>

#include "train/collective/device.h"
#include "train/collective/process/nccl_group.h"

namespace stoker {

struct CudaCollectiveOptions {
  ReduceKind how = ReduceKind::automatic;
  SumOptions sum{};                // its wire
  std::shared_ptr<Ranks> ranks{};  // null: all are in this process
  PushTarget push{};               // for server_device
};

std::unique_ptr<Collective> make_cuda_collective(std::span<const DeviceReplica> replicas,
                                                 CudaCollectiveOptions options);

}  // namespace stoker
