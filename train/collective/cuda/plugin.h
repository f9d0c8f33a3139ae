// The second entry of libstoker_cuda_train.so, stoker_cuda_collective_plugin(): sums over GPUs. As
// in cuda_plugin.h, program and plugin must come from one build. Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "train/collective/process/nccl_group.h"

namespace stoker {

inline constexpr char kCudaCollectivePluginFile[] = "libstoker_cuda_train.so";
inline constexpr char kCudaCollectivePluginEntry[] = "stoker_cuda_collective_plugin";
inline constexpr int kCudaCollectivePluginVersion = 3;  // of this table

using NcclId = std::array<std::byte, 128>;  // ncclUniqueId

struct CudaCollectivePlugin {
  int version = 0;              // kCudaCollectivePluginVersion; first in every version of the table
  const char* build = nullptr;  // stamp of the plugin's build
  SumKernel (*make_sum)(int ordinal) = nullptr;
  // Both throw std::runtime_error if NCCL cannot be opened; the first call that needs it opens it.
  NcclId (*make_nccl_id)() = nullptr;
  // The first `bf16_floats` of a buffer travel as bf16. Returns when all ranks of all processes
  // have joined, with the same `id`.
  std::unique_ptr<Collective> (*make_nccl)(std::span<const DeviceReplica> replicas,
                                           std::shared_ptr<Ranks> ranks, const NcclId& id,
                                           int64_t bf16_floats) = nullptr;
  // Makes a group on `device`, a GPU. make_nccl_id() returns the same id in every process because
  // NCCL_COMM_ID is set. Returns when all processes have joined.
  std::unique_ptr<NcclGroup> (*make_group)(std::unique_ptr<Device> device, int rank,
                                           int size) = nullptr;
};

using CudaCollectivePluginEntry = const CudaCollectivePlugin* (*)();

}  // namespace stoker
