#include "train/cuda_nccl.h"

#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "staging/cuda_context.h"
#include "train/cuda_reduce.h"

namespace stoker {
namespace {

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

struct Nccl {
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) init_rank = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;

  void check(ncclResult_t result, const char* call) const {
    if (result == ncclSuccess) return;
    std::string text = std::string("NCCL: ") + call + ": " + error_string(result);
    const char* detail = last_error(nullptr);
    if (detail != nullptr && *detail != '\0') text += std::string(" (") + detail + ")";
    throw std::runtime_error(text);
  }
};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("libnccl.so.2 has no ") + name);
}

Nccl open_nccl() {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);  // stays: it has threads
  if (library == nullptr) throw std::runtime_error(std::string("cannot open NCCL: ") + dlerror());
  Nccl nccl;
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRank", nccl.init_rank);
  find(library, "ncclCommAbort", nccl.abort);
  find(library, "ncclCommDestroy", nccl.destroy);
  find(library, "ncclGroupStart", nccl.group_start);
  find(library, "ncclGroupEnd", nccl.group_end);
  find(library, "ncclAllReduce", nccl.all_reduce);
  find(library, "ncclGetErrorString", nccl.error_string);
  find(library, "ncclGetLastError", nccl.last_error);
  return nccl;
}

// One rank: its communicator, and a stream for what travels.
class Rank {
 public:
  Rank(const Nccl& nccl, const DeviceReplica& replica)
      : nccl_(nccl), replica_(replica), context_(replica.device->cuda_ordinal()) {
    stream_ = replica.device->make_stream();
    given_ = replica.device->make_event();
    summed_ = replica.device->make_event();
  }
  ~Rank() {
    CudaContext::Current current(context_);
    if (ncclComm_t communicator = communicator_.load()) nccl_.destroy(communicator);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Between group_start() and group_end() of one thread.
  void join(const NcclRanks& ranks, int rank) {
    CudaContext::Current current(context_);
    ncclUniqueId id;
    std::memcpy(&id, ranks.id.data(), sizeof id);
    nccl_.check(nccl_.init_rank(&joined_, ranks.all, id, rank), "ncclCommInitRank");
    narrow_floats_ = ranks.narrow_floats;
  }

  void all_reduce(std::span<const float* const> parts, std::span<float> result) {
    CudaContext::Current current(context_);
    const auto count = static_cast<int64_t>(result.size());
    const float* from = own_sum(parts, result);
    replica_.stream->record(*given_);
    stream_->wait(*given_);
    const int64_t narrow = std::min(narrow_floats_, count);
    if (narrow > 0) reduce_narrow(from, result.data(), narrow);
    if (narrow < count) reduce(from + narrow, result.data() + narrow, count - narrow, ncclFloat);
    stream_->record(*summed_);
    replica_.stream->wait(*summed_);
  }

  // The group has ended: everybody is there.
  void start() { communicator_ = joined_; }

  // From any thread: what hangs on the device ends.
  void abort() noexcept {
    if (ncclComm_t communicator = communicator_.exchange(nullptr)) nccl_.abort(communicator);
  }

 private:
  cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_->native_handle()); }

  const float* own_sum(std::span<const float* const> parts, std::span<float> result) {
    if (parts.size() == 1) return parts.front();
    PartSum sum;
    sum.part_count = static_cast<int>(parts.size());
    if (sum.part_count > PartSum::kMostParts) throw std::invalid_argument("NCCL: too many parts");
    std::copy(parts.begin(), parts.end(), sum.parts.begin());
    sum.results[0] = result.data();
    sum.result_count = 1;
    sum.end = static_cast<int64_t>(result.size());
    auto* stream = static_cast<cudaStream_t>(replica_.stream->native_handle());
    context_.check(launch_sum_parts(stream, sum), "sum_parts");
    return result.data();
  }

  void reduce(const void* from, void* to, int64_t count, ncclDataType_t type) {
    ncclComm_t communicator = communicator_.load();
    if (communicator == nullptr) {
      throw std::runtime_error("collective: aborted, because another replica failed");
    }
    nccl_.check(nccl_.all_reduce(from, to, static_cast<size_t>(count), type, ncclSum, communicator,
                                 handle()),
                "ncclAllReduce");
  }

  void reduce_narrow(const float* from, float* to, int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(uint16_t);
    if (narrow_ == nullptr || narrow_->size_bytes() < bytes) {
      narrow_ = replica_.device->allocate(bytes, MemoryKind::device);
    }
    auto* narrow = reinterpret_cast<uint16_t*>(narrow_->data());
    context_.check(launch_narrow(handle(), from, narrow, count), "narrow");
    reduce(narrow, narrow, count, ncclBfloat16);
    context_.check(launch_widen(handle(), narrow, to, count), "widen");
  }

  const Nccl& nccl_;
  const DeviceReplica replica_;
  const CudaContext context_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> given_;   // on the replica's stream: its part is complete
  std::unique_ptr<Event> summed_;  // on stream_: the sum is there
  std::unique_ptr<Memory> narrow_;
  int64_t narrow_floats_ = 0;
  ncclComm_t joined_ = nullptr;  // the caller's of join() and start()
  std::atomic<ncclComm_t> communicator_{nullptr};
};

class NcclCollective final : public Collective {
 public:
  NcclCollective(std::span<const DeviceReplica> replicas, const NcclRanks& ranks,
                 std::unique_ptr<Collective> host)
      : nccl_(open_nccl()), host_(std::move(host)) {
    for (const DeviceReplica& replica : replicas) {
      ranks_.push_back(std::make_unique<Rank>(nccl_, replica));
    }
    nccl_.check(nccl_.group_start(), "ncclGroupStart");
    int next = ranks.first;
    for (const auto& rank : ranks_) rank->join(ranks, next++);
    nccl_.check(nccl_.group_end(), "ncclGroupEnd");
    for (const auto& rank : ranks_) rank->start();
  }

  int size() const override { return host_->size(); }
  void all_reduce(int rank, std::span<const float* const> parts, std::span<float> result) override {
    ranks_.at(static_cast<size_t>(rank))->all_reduce(parts, result);
  }
  void broadcast(int rank, std::span<float> values, int root) override {
    host_->broadcast(rank, values, root);
  }
  void barrier(int rank) override { host_->barrier(rank); }
  void abort() noexcept override {
    host_->abort();
    for (const auto& rank : ranks_) rank->abort();
  }

 private:
  const Nccl nccl_;
  const std::unique_ptr<Collective> host_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace

NcclId make_nccl_id() {
  const Nccl nccl = open_nccl();
  ncclUniqueId unique;
  nccl.check(nccl.get_unique_id(&unique), "ncclGetUniqueId");
  NcclId id;
  std::memcpy(id.data(), &unique, sizeof unique);
  return id;
}

std::unique_ptr<Collective> make_nccl_collective(std::span<const DeviceReplica> replicas,
                                                 const NcclRanks& ranks,
                                                 std::unique_ptr<Collective> host) {
  return std::make_unique<NcclCollective>(replicas, ranks, std::move(host));
}

}  // namespace stoker
