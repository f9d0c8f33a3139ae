// Sums over replicas on GPUs, by one of three ways. What needs CUDA is in the plugin of the CUDA
// engine, opened here. Threads: as train/collective/collective.h says; made by one. Errors:
// std::runtime_error with what is missing and why; std::invalid_argument for a way that the devices
// do not allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "train/collective/device.h"
#include "train/collective/process/nccl_group.h"
#include "train/collective/reduce_kind.h"

namespace stoker {

// What `automatic` is for replicas on these devices (Device::cuda_ordinal()).
ReduceKind best_reduction(std::span<const int> ordinals, bool several_processes);

struct CudaCollectiveOptions {
  ReduceKind how = ReduceKind::automatic;
  // NCCL: so many of a part's first floats (gradients) travel as bf16; the rest is fp32 always.
  int64_t bf16_floats = 0;
  // Of the same ranks in host memory, over all processes; null: the ranks of this process.
  std::unique_ptr<Collective> host;
  // Several processes: which of all ranks is the first here, and a way to give process 0's bytes to
  // all. NCCL meets through it.
  int first_rank = 0;
  std::function<void(std::span<std::byte> bytes)> share;
  // Or, where the processes speak through NCCL already, their group, which outlives the collective.
  NcclGroup* group = nullptr;
};

std::unique_ptr<Collective> make_cuda_collective(std::span<const DeviceReplica> replicas,
                                                 CudaCollectiveOptions options);

}  // namespace stoker
