// NCCL, opened at run time: a run on one GPU does not load its 200 MB. Internal to the plugin; see
// cuda_collective_plugin.h. Errors: std::runtime_error with NCCL's text.
#pragma once

#include <memory>
#include <span>

#include "train/cuda_collective_plugin.h"

namespace stoker {

NcclId make_nccl_id();
std::unique_ptr<Collective> make_nccl_collective(std::span<const DeviceReplica> replicas,
                                                 const NcclRanks& ranks,
                                                 std::unique_ptr<Collective> host);

}  // namespace stoker
