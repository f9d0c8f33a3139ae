#include "train/collective/cuda/nccl.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/collective/cuda/reduce.h"

namespace stoker {
namespace {

// One rank, which sums on its link's stream.
class Rank {
 public:
  Rank(const DeviceReplica& replica, std::shared_ptr<NcclLink> link, int64_t bf16_floats)
      : replica_(replica), link_(std::move(link)), bf16_floats_(bf16_floats) {
    given_ = replica.device->make_event();
    summed_ = replica.device->make_event();
    // Allocated here and not at the first sum: cudaMalloc may wait for work that another rank's sum
    // waits for.
    if (bf16_floats > 0) {
      bf16_ = replica.device->allocate(static_cast<size_t>(bf16_floats) * sizeof(uint16_t),
                                       MemoryKind::device);
    }
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  NcclLink& link() { return *link_; }
  int64_t bytes_of(BufferRange range) const {
    const int64_t bf16_end = std::clamp(bf16_floats_, range.begin, range.end);
    return 2 * (bf16_end - range.begin) + 4 * (range.end - bf16_end);
  }

  void start(std::span<const float* const> buffers, std::span<float> result, BufferRange range) {
    CudaContext::Current current(link_->context());
    const float* from = own_sum(buffers, result, range);
    replica_.stream->record(*given_);
    link_->stream().wait(*given_);
    const int64_t bf16_end = std::clamp(bf16_floats_, range.begin, range.end);
    float* to = result.data();
    if (range.begin < bf16_end) {
      reduce_as_bf16(from + range.begin, to + range.begin, bf16_end - range.begin);
    }
    if (bf16_end < range.end) {
      reduce(from + bf16_end, to + bf16_end, range.end - bf16_end, ncclFloat);
    }
  }

  void finish() {
    CudaContext::Current current(link_->context());
    link_->stream().record(*summed_);
    replica_.stream->wait(*summed_);
  }

 private:
  const float* own_sum(std::span<const float* const> buffers, std::span<float> result,
                       BufferRange range) {
    if (buffers.size() == 1) return buffers.front();
    BufferSum sum;
    sum.buffer_count = static_cast<int>(buffers.size());
    if (sum.buffer_count > BufferSum::kMaxBuffers) {
      throw std::invalid_argument("NCCL: too many buffers");
    }
    std::copy(buffers.begin(), buffers.end(), sum.buffers.begin());
    sum.results[0] = result.data();
    sum.result_count = 1;
    sum.begin = range.begin;
    sum.end = range.end;
    auto* stream = static_cast<cudaStream_t>(replica_.stream->native_handle());
    link_->context().check(launch_sum_buffers(stream, sum), "sum_buffers");
    return result.data();
  }

  void reduce(const void* from, void* to, int64_t count, ncclDataType_t type) {
    const Nccl& nccl = link_->nccl();
    nccl.check(nccl.all_reduce(from, to, static_cast<size_t>(count), type, ncclSum,
                               link_->communicator(), link_->handle()),
               "ncclAllReduce");
  }

  // All ranges use the same buffer, which is safe because they are ordered on the link's stream.
  void reduce_as_bf16(const float* from, float* to, int64_t count) {
    auto* bf16 = reinterpret_cast<uint16_t*>(bf16_->data());
    const CudaContext& context = link_->context();
    context.check(launch_cast_to_bf16(link_->handle(), from, bf16, count), "cast to bf16");
    reduce(bf16, bf16, count, ncclBfloat16);
    context.check(launch_cast_to_fp32(link_->handle(), bf16, to, count), "cast to fp32");
  }

  const DeviceReplica replica_;
  const std::shared_ptr<NcclLink> link_;
  const int64_t bf16_floats_;
  std::unique_ptr<Event> given_;   // on the replica's stream: its buffer is complete in the range
  std::unique_ptr<Event> summed_;  // on the link's stream: the sums are complete
  std::unique_ptr<Memory> bf16_;   // the gradients that are sent as bf16
};

class NcclCollective final : public RangeCollective {
 public:
  explicit NcclCollective(std::shared_ptr<Ranks> ranks) : RangeCollective(std::move(ranks)) {}

  void add(const DeviceReplica& replica, std::shared_ptr<NcclLink> link, int64_t bf16_floats) {
    ranks_.push_back(std::make_unique<Rank>(replica, std::move(link), bf16_floats));
  }

  void start(int rank, std::span<const float* const> buffers, std::span<float> result,
             BufferRange range) override {
    Rank& own = *ranks_.at(static_cast<size_t>(rank));
    own.start(buffers, result, range);
    if (rank == 0) count(own.bytes_of(range));
  }
  void finish(int rank) override { ranks_.at(static_cast<size_t>(rank))->finish(); }
  void abort() noexcept override {
    Collective::abort();
    for (const auto& rank : ranks_) rank->link().abort();
  }

 private:
  // In a ring every rank sends a share to the next one: first to sum it, then to spread the sum.
  void count(int64_t bytes) {
    const auto here = static_cast<int64_t>(ranks_.size());
    const int64_t sum = here * 2 * (size() - 1) * bytes / size();
    traffic_ += {sum, sum, 0, 0};
  }

  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace

std::unique_ptr<Collective> make_nccl_collective(std::span<const DeviceReplica> replicas,
                                                 std::shared_ptr<Ranks> ranks, const NcclId& id,
                                                 int64_t bf16_floats) {
  const Nccl nccl = open_nccl();
  std::vector<std::shared_ptr<NcclLink>> links;
  for (const DeviceReplica& replica : replicas) {
    links.push_back(std::make_shared<NcclLink>(nccl, *replica.device));
  }
  nccl.check(nccl.group_start(), "ncclGroupStart");
  int next = ranks->first();
  for (const auto& link : links) link->join(id, next++, ranks->size());
  nccl.check(nccl.group_end(), "ncclGroupEnd");
  auto collective = std::make_unique<NcclCollective>(std::move(ranks));
  for (size_t rank = 0; rank < links.size(); ++rank) {
    links[rank]->start();
    collective->add(replicas[rank], links[rank], bf16_floats);
  }
  return collective;
}

std::unique_ptr<Collective> make_linked_collective(const DeviceReplica& replica,
                                                   std::shared_ptr<NcclLink> link,
                                                   int64_t bf16_floats,
                                                   std::shared_ptr<Ranks> ranks) {
  auto collective = std::make_unique<NcclCollective>(std::move(ranks));
  collective->add(replica, std::move(link), bf16_floats);
  return collective;
}

namespace {

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("libnccl.so.2 has no ") + name);
}

}  // namespace

void Nccl::check(ncclResult_t result, const char* call) const {
  if (result == ncclSuccess) return;
  std::string text = std::string("NCCL: ") + call + ": " + error_string(result);
  const char* detail = last_error(nullptr);
  if (detail != nullptr && *detail != '\0') text += std::string(" (") + detail + ")";
  throw std::runtime_error(text);
}

Nccl open_nccl() {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);  // stays: it has threads
  if (library == nullptr) throw std::runtime_error(std::string("cannot open NCCL: ") + dlerror());
  Nccl nccl;
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRank", nccl.init_rank);
  find(library, "ncclCommGetAsyncError", nccl.async_error);
  find(library, "ncclCommAbort", nccl.abort);
  find(library, "ncclCommDestroy", nccl.destroy);
  find(library, "ncclGroupStart", nccl.group_start);
  find(library, "ncclGroupEnd", nccl.group_end);
  find(library, "ncclAllReduce", nccl.all_reduce);
  find(library, "ncclAllGather", nccl.all_gather);
  find(library, "ncclBroadcast", nccl.broadcast);
  find(library, "ncclGetErrorString", nccl.error_string);
  find(library, "ncclGetLastError", nccl.last_error);
  return nccl;
}

NcclLink::NcclLink(const Nccl& nccl, Device& device)
    : nccl_(nccl), context_(device.cuda_ordinal()), stream_(device.make_stream()) {}

NcclLink::~NcclLink() {
  const CudaContext::Current current(context_, std::nothrow);
  if (current.error() != cudaSuccess) return;
  if (ncclComm_t communicator = communicator_.load()) nccl_.destroy(communicator);
}

void NcclLink::join(const NcclId& id, int rank, int ranks) {
  CudaContext::Current current(context_);
  ncclUniqueId unique;
  std::memcpy(&unique, id.data(), sizeof unique);
  nccl_.check(nccl_.init_rank(&joined_, ranks, unique, rank), "ncclCommInitRank");
}

void NcclLink::abort() noexcept {
  const MutexLock lock(asking_);
  if (ncclComm_t communicator = communicator_.exchange(nullptr)) nccl_.abort(communicator);
}

ncclComm_t NcclLink::communicator() const {
  ncclComm_t communicator = communicator_.load();
  if (communicator == nullptr) {
    throw std::runtime_error("collective: aborted, because another replica failed");
  }
  return communicator;
}

void NcclLink::check_others() const {
  const MutexLock lock(asking_);
  ncclResult_t state = ncclSuccess;
  nccl_.check(nccl_.async_error(communicator(), &state), "ncclCommGetAsyncError");
  nccl_.check(state, "communication");
}

NcclId make_nccl_id() {
  const Nccl nccl = open_nccl();
  ncclUniqueId unique;
  nccl.check(nccl.get_unique_id(&unique), "ncclGetUniqueId");
  NcclId id;
  std::memcpy(id.data(), &unique, sizeof unique);
  return id;
}

}  // namespace stoker
