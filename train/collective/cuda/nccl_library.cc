#include "train/collective/cuda/nccl_library.h"

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "train/collective/cuda/nccl.h"

namespace stoker {
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
