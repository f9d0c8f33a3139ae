// Sums over GPUs through NCCL, and groups of processes that communicate through it. Internal to the
// plugin; see plugin.h. Errors: std::runtime_error with NCCL's text.
#pragma once

#include <memory>
#include <span>

#include "train/collective/cuda/plugin.h"

namespace stoker {

class NcclLink;

NcclId make_nccl_id();
std::unique_ptr<Collective> make_nccl_collective(std::span<const DeviceReplica> replicas,
                                                 std::shared_ptr<Ranks> ranks, const NcclId& id,
                                                 int64_t bf16_floats);
// For one replica, over a link that is also used for other communication.
std::unique_ptr<Collective> make_linked_collective(const DeviceReplica& replica,
                                                   std::shared_ptr<NcclLink> link,
                                                   int64_t bf16_floats,
                                                   std::shared_ptr<Ranks> ranks);
std::unique_ptr<NcclGroup> make_nccl_group(std::unique_ptr<Device> device, int rank, int size);

}  // namespace stoker
