// libnccl.so.2 on the fake CUDA runtime: an all-reduce is a host function in each rank's stream
// that waits for the others, as NCCL's kernels do. One process. What NCCL refuses, it refuses.
#include <nccl.h>

#include <condition_variable>
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

struct Operation {
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclFloat;
};

struct World {
  std::mutex mutex;
  std::condition_variable changed;
  size_t size = 0;
  std::set<int> devices;
  std::vector<Operation> here;  // of this round, by rank
  size_t arrived = 0;
  int64_t round = 0;
  bool aborted = false;
};

float read(const Operation& operation, size_t i) {
  if (operation.type == ncclFloat) return static_cast<const float*>(operation.from)[i];
  const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(operation.from)[i])
                        << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void write(const Operation& operation, size_t i, float value) {
  if (operation.type == ncclFloat) {
    static_cast<float*>(operation.to)[i] = value;
  } else {
    static_cast<uint16_t*>(operation.to)[i] = stoker::bf16_bits(value);
  }
}

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<World>> worlds;

}  // namespace

struct ncclComm {
  std::shared_ptr<World> world;
  size_t rank = 0;
};

namespace {

struct Call {
  ncclComm* communicator;
  Operation operation;
};

// The last rank to arrive does it for all.
void run(void* data) {
  const std::unique_ptr<Call> call(static_cast<Call*>(data));
  const std::shared_ptr<World> world = call->communicator->world;
  std::unique_lock lock(world->mutex);
  world->here[call->communicator->rank] = call->operation;
  const int64_t round = world->round;
  if (++world->arrived == world->size) {
    for (size_t i = 0; i < call->operation.count; ++i) {
      float sum = 0;
      for (const Operation& each : world->here) sum += read(each, i);
      for (const Operation& each : world->here) write(each, i, sum);
    }
    world->arrived = 0;
    ++world->round;
    world->changed.notify_all();
  }
  world->changed.wait(lock, [&] { return world->round != round || world->aborted; });
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int next = 0;
  std::memset(id, 0, sizeof *id);
  std::lock_guard lock(worlds_mutex);
  std::memcpy(id->internal, &++next, sizeof next);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int size, ncclUniqueId id, int rank) {
  std::lock_guard lock(worlds_mutex);
  auto& world = worlds[std::string(id.internal, sizeof id.internal)];
  if (world == nullptr) world = std::make_shared<World>();
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
  auto call = std::make_unique<Call>(Call{communicator, {from, to, count, type}});
  if (cudaLaunchHostFunc(stream, &run, call.release()) != cudaSuccess)
    return ncclUnhandledCudaError;
  return ncclSuccess;
}
}
