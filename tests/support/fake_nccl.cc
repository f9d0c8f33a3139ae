// libnccl.so.2 on the fake CUDA runtime: an all-reduce is a host function in each rank's stream
// that waits for the others, like NCCL's kernels. One process. It refuses what NCCL refuses.
#include <nccl.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "staging/normalise.h"
#include "tests/support/fake_cuda_driver.h"

namespace {

enum class NcclKind { sum, gather, broadcast };

struct NcclOperation {
  NcclKind kind = NcclKind::sum;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclFloat;
  size_t root = 0;
};

struct World {
  std::mutex mutex;
  std::condition_variable changed;
  size_t size = 0;
  std::set<int> devices;
  std::vector<NcclOperation> here;  // of this round, by rank
  size_t arrived = 0;
  int64_t round = 0;
  bool aborted = false;
};

float read(const NcclOperation& operation, size_t i) {
  if (operation.type == ncclFloat) return static_cast<const float*>(operation.from)[i];
  const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(operation.from)[i])
                        << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void write(const NcclOperation& operation, size_t i, float value) {
  if (operation.type == ncclFloat) {
    static_cast<float*>(operation.to)[i] = value;
  } else {
    static_cast<uint16_t*>(operation.to)[i] = stoker::bf16_bits(value);
  }
}

std::mutex worlds_mutex;
// Constructed by the first call and not by dlopen(), whose lock ThreadSanitizer does not know.
std::map<std::string, std::shared_ptr<World>>& worlds() {
  static std::map<std::string, std::shared_ptr<World>> all;
  return all;
}

}  // namespace

struct ncclComm {
  std::shared_ptr<World> world;
  size_t rank = 0;
};

namespace {

struct Call {
  ncclComm* communicator;
  NcclOperation operation;
};

void sum(const std::vector<NcclOperation>& here) {
  for (size_t i = 0; i < here[0].count; ++i) {
    float sum = 0;
    for (const NcclOperation& each : here) sum += read(each, i);
    for (const NcclOperation& each : here) write(each, i, sum);
  }
}

// Copies bytes; a rank's own may overlap their target.
void copy_all(const std::vector<NcclOperation>& here) {
  std::vector<std::vector<char>> given;
  for (const NcclOperation& each : here) {
    const auto* from = static_cast<const char*>(each.from);
    given.emplace_back(from, from + each.count);
  }
  for (const NcclOperation& each : here) {
    auto* to = static_cast<char*>(each.to);
    if (each.kind == NcclKind::broadcast) {
      std::memcpy(to, given[each.root].data(), each.count);
      continue;
    }
    for (const auto& bytes : given) {
      std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
    }
  }
}

// Ranks whose calls differ would hang or mix up bytes on a GPU.
void require_same(const std::vector<NcclOperation>& here) {
  for (const NcclOperation& each : here) {
    if (each.kind == here[0].kind && each.count == here[0].count && each.type == here[0].type &&
        each.root == here[0].root) {
      continue;
    }
    std::fprintf(stderr, "fake NCCL: the ranks' calls differ\n");
    std::abort();
  }
}

// The last rank to arrive does the work for all.
void run_call(void* data) {
  const std::unique_ptr<Call> call(static_cast<Call*>(data));
  const std::shared_ptr<World> world = call->communicator->world;
  std::unique_lock lock(world->mutex);
  world->here[call->communicator->rank] = call->operation;
  const int64_t round = world->round;
  if (++world->arrived == world->size) {
    require_same(world->here);
    if (call->operation.kind == NcclKind::sum) {
      sum(world->here);
    } else {
      copy_all(world->here);
    }
    world->arrived = 0;
    ++world->round;
    world->changed.notify_all();
  }
  world->changed.wait(lock, [&] { return world->round != round || world->aborted; });
}

ncclResult_t queue(ncclComm_t communicator, const NcclOperation& operation, cudaStream_t stream) {
  auto call = std::make_unique<Call>(Call{communicator, operation});
  if (cudaLaunchHostFunc(stream, &run_call, call.release()) != cudaSuccess)
    return ncclUnhandledCudaError;
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int next = 0;
  std::memset(id, 0, sizeof *id);
  // The same for all processes that have it set.
  if (const char* address = std::getenv("NCCL_COMM_ID")) {
    std::strncpy(id->internal, address, sizeof id->internal - 1);
    return ncclSuccess;
  }
  std::lock_guard lock(worlds_mutex);
  std::memcpy(id->internal, &++next, sizeof next);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int size, ncclUniqueId id, int rank) {
  std::lock_guard lock(worlds_mutex);
  auto& world = worlds()[std::string(id.internal, sizeof id.internal)];
  if (world == nullptr) world = std::make_shared<World>();
  std::lock_guard world_lock(world->mutex);
  world->size = static_cast<size_t>(size);
  world->here.resize(world->size);
  if (!world->devices.insert(fake_cuda_driver_device()).second) return ncclInvalidUsage;
  *communicator = new ncclComm{world, static_cast<size_t>(rank)};
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  std::lock_guard lock(communicator->world->mutex);
  communicator->world->aborted = true;
  communicator->world->changed.notify_all();
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t) { return "invalid usage"; }
const char* ncclGetLastError(ncclComm_t) { return "Duplicate GPU detected"; }

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  if (operation != ncclSum || (type != ncclFloat && type != ncclBfloat16))
    return ncclInvalidArgument;
  return queue(communicator, {NcclKind::sum, from, to, count, type, 0}, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclInt8) return ncclInvalidArgument;
  return queue(communicator, {NcclKind::gather, from, to, count, type, 0}, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclInt8) return ncclInvalidArgument;
  return queue(communicator,
               {NcclKind::broadcast, from, to, count, type, static_cast<size_t>(root)}, stream);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  std::lock_guard lock(communicator->world->mutex);
  *state = communicator->world->aborted ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
}
