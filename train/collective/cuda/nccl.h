// Sums over GPUs through NCCL, and groups of processes that communicate through it. Internal to the
// plugin; see plugin.h. Errors: std::runtime_error with NCCL's text.
#pragma once

#include <nccl.h>

#include <atomic>
#include <memory>
#include <span>

#include "staging/cuda_context.h"
#include "staging/device.h"
#include "staging/mutex.h"
#include "train/collective/cuda/plugin.h"

namespace stoker {

// NCCL's functions.
struct Nccl {
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) init_rank = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;

  void check(ncclResult_t result, const char* call) const;
};

Nccl open_nccl();  // at run time, so that a run on one GPU does not load its 200 MB

// One rank's communicator and the stream on which all its work is queued, in one order. Threads:
// the rank's own; abort() from any.
class NcclLink {
 public:
  NcclLink(const Nccl& nccl, Device& device);
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  // Joins the ranks. A thread that joins several ranks calls it between group_start() and
  // group_end(), and start() after the group has ended, when all ranks have joined.
  void join(const NcclId& id, int rank, int ranks);
  void start() { communicator_ = joined_; }
  // From any thread. Ends what hangs on the device.
  void abort() noexcept;

  const Nccl& nccl() const { return nccl_; }
  const CudaContext& context() const { return context_; }
  Stream& stream() { return *stream_; }
  cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_->native_handle()); }
  // Throws after abort().
  ncclComm_t communicator() const;
  // Throws if another rank, or the connection to it, has failed.
  void check_others() const;

 private:
  const Nccl nccl_;
  const CudaContext context_;
  const std::unique_ptr<Stream> stream_;
  ncclComm_t joined_ = nullptr;  // only for the thread that calls join() and start()
  std::atomic<ncclComm_t> communicator_{nullptr};
  // Held while a call looks at the communicator, so that abort() does not free it meanwhile. No
  // such call blocks for long. It guards the object behind the handle, not the handle: calls that
  // block must not hold it, because abort() is what ends them.
  mutable Mutex asking_;
};

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
