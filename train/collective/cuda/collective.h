// Sums over replicas on GPUs, in one of several ways (ReduceKind). The code that needs CUDA is in
// the plugin of the CUDA engine, which is opened here. Threads: see train/collective/collective.h;
// one thread constructs. Errors: std::runtime_error with what is missing and why;
// std::invalid_argument for a way that the devices do not allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "train/collective/device.h"
#include "train/collective/process/nccl_group.h"
#include "train/collective/reduce_kind.h"
#include "train/collective/wire/grad_wire.h"

namespace stoker {

// Returns what `automatic` means for replicas on these devices (Device::cuda_ordinal()).
ReduceKind best_reduction(std::span<const int> ordinals, bool several_processes);

struct CudaCollectiveOptions {
  ReduceKind how = ReduceKind::automatic;
  GradWire wire = GradWire::fp32;
  // Number of a buffer's first floats that travel in `wire`, the gradients; the rest is fp32.
  int64_t gradient_floats = 0;
  // A collective of the same ranks in host memory; null: all ranks are in this process.
  std::unique_ptr<Collective> host;
  // Makes the same for gradients in `wire`; may be empty if that is fp32.
  std::function<std::unique_ptr<Collective>()> make_carrier;
  // For several processes: the first rank of this process among all ranks, and a function that
  // sends process 0's bytes to all processes (NCCL's id).
  int first_rank = 0;
  std::function<void(std::span<std::byte> bytes)> share;
  PushTarget push;  // for server_device
  // Instead of these, the group of processes that communicate through NCCL; it must outlive the
  // collective.
  NcclGroup* group = nullptr;
};

std::unique_ptr<Collective> make_cuda_collective(std::span<const DeviceReplica> replicas,
                                                 CudaCollectiveOptions options);

}  // namespace stoker
