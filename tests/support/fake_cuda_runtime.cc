// libcudart.so of fake_cuda.h: CUDA's C interface over a FakeDevice.
#include "tests/support/fake_cuda_runtime.h"

#include <cuda_runtime_api.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/fake_cuda.h"
#include "tests/support/fake_cuda_driver.h"
#include "tests/support/fake_cuda_streams.h"

using stoker::CopyKind;
using stoker::Event;
using stoker::Memory;
using stoker::MemoryKind;
using stoker::Stream;
using stoker::testing::FakeCudaNoStream;
using stoker::testing::FakeCudaStreams;
using stoker::testing::FakeDevice;

namespace {

struct FakeRuntime {
  std::mutex mutex;
  std::unique_ptr<FakeDevice> device = std::make_unique<FakeDevice>();
  std::unique_ptr<FakeCudaStreams> streams = std::make_unique<FakeCudaStreams>(*device);
  std::map<std::string, int64_t> counts;  // guarded by mutex, as all below
  std::map<const std::byte*, std::unique_ptr<Memory>> allocations;  // by address
  std::map<const std::byte*, size_t> pinned;                        // address -> bytes
  std::set<Stream*> alive;                                          // made and not destroyed
  std::vector<std::unique_ptr<Stream>> others;  // another library's, alive or not
  int ending = 0;                               // destroyed streams whose work still runs
  std::condition_variable ended;                // one of these ended
  bool refuse_memory = false;
  std::atomic<bool> failed{false};
};

FakeRuntime& runtime() {
  static FakeRuntime* fake = new FakeRuntime;  // its threads may outlive main()
  return *fake;
}

thread_local bool in_host_function = false;
thread_local cudaError_t last_error = cudaSuccess;

void count(const std::string& what) {
  std::lock_guard lock(runtime().mutex);
  ++runtime().counts[what];
}

// Counts a call of `name`, and refuses it where CUDA forbids it.
template <typename Work>
cudaError_t call(const char* name, Work work) {
  count(name);
  if (in_host_function) {
    count("in a host function");
    return last_error = cudaErrorNotPermitted;
  }
  if (fake_cuda_driver_device() < 0) count("no context");
  if (runtime().failed) return last_error = cudaErrorIllegalAddress;
  try {
    const cudaError_t error = work();
    if (error != cudaSuccess) last_error = error;
    return error;
  } catch (const FakeCudaNoStream&) {
    return last_error = cudaErrorInvalidResourceHandle;
  } catch (const std::exception&) {
    return last_error = cudaErrorIllegalAddress;  // a FakeDevice that has failed keeps failing
  }
}

void wait_for_destroyed_streams() {
  FakeRuntime& fake = runtime();
  std::unique_lock lock(fake.mutex);
  fake.ended.wait(lock, [&] { return fake.ending == 0; });
}

Stream& made_here(std::unique_ptr<Stream> stream) {
  std::lock_guard lock(runtime().mutex);
  runtime().alive.insert(stream.get());
  return *stream.release();
}

Stream& stream_of(cudaStream_t handle) {
  if (handle == cudaStreamLegacy) return runtime().streams->legacy();
  if (handle == cudaStreamPerThread) return runtime().streams->of_this_thread();
  auto* stream = reinterpret_cast<Stream*>(handle);
  std::lock_guard lock(runtime().mutex);
  if (!runtime().alive.contains(stream)) throw FakeCudaNoStream();
  return *stream;
}
Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

cudaError_t allocate(void** data, size_t bytes, MemoryKind kind) {
  FakeRuntime& fake = runtime();
  std::lock_guard lock(fake.mutex);
  if (fake.refuse_memory) return cudaErrorMemoryAllocation;
  std::unique_ptr<Memory> memory = fake.device->allocate(bytes, kind);
  *data = memory->data();
  if (kind == MemoryKind::pinned) fake.pinned[memory->data()] = bytes;
  fake.allocations[memory->data()] = std::move(memory);
  return cudaSuccess;
}

// A destructor could not report the wrong call, so the fake ends the test.
cudaError_t release(void* data, MemoryKind kind) {
  FakeRuntime& fake = runtime();
  std::unique_ptr<Memory> memory;
  std::lock_guard lock(fake.mutex);
  auto found = fake.allocations.find(static_cast<std::byte*>(data));
  if (found == fake.allocations.end()) return cudaErrorInvalidValue;
  if (fake.pinned.contains(found->first) != (kind == MemoryKind::pinned)) {
    std::fprintf(stderr, "fake CUDA: memory of one kind freed as the other\n");
    std::abort();
  }
  memory = std::move(found->second);
  fake.allocations.erase(found);
  fake.pinned.erase(static_cast<std::byte*>(data));
  return cudaSuccess;
}

void check_pinned(const void* data, size_t bytes) {
  FakeRuntime& fake = runtime();
  const auto* address = static_cast<const std::byte*>(data);
  std::lock_guard lock(fake.mutex);
  auto after = fake.pinned.upper_bound(address);
  if (after != fake.pinned.begin()) {
    const auto& [begin, size] = *std::prev(after);
    if (address + bytes <= begin + size) return;
  }
  ++fake.counts["pageable copy"];
}

}  // namespace

namespace stoker::testing {

void reset_fake_cuda(const FakeDeviceOptions& options) {
  FakeRuntime& fake = runtime();
  wait_for_destroyed_streams();
  std::lock_guard lock(fake.mutex);
  fake.streams.reset();
  fake.others.clear();
  fake.alive.clear();
  fake.device = std::make_unique<FakeDevice>(options);
  fake.streams = std::make_unique<FakeCudaStreams>(*fake.device);
  fake.counts.clear();
  fake.refuse_memory = false;
  fake.failed = false;
  fake_cuda_driver_refuse(0);
}

FakeDevice& fake_cuda_device() { return *runtime().device; }

int64_t fake_cuda_count(const std::string& what) {
  std::lock_guard lock(runtime().mutex);
  auto found = runtime().counts.find(what);
  return found == runtime().counts.end() ? 0 : found->second;
}

void fake_cuda_refuse_memory(bool refuse) {
  std::lock_guard lock(runtime().mutex);
  runtime().refuse_memory = refuse;
}

cudaError_t fake_cuda_call(const char* name, const std::function<cudaError_t()>& work) {
  return call(name, work);
}

Stream& fake_cuda_stream(cudaStream_t stream) { return stream_of(stream); }

Stream& fake_cuda_others_stream() {
  FakeRuntime& fake = runtime();
  std::lock_guard lock(fake.mutex);
  Stream& stream = *fake.others.emplace_back(fake.device->make_stream());
  fake.alive.insert(&stream);
  return stream;
}

void fake_cuda_destroy_others_stream(Stream& stream) {
  std::lock_guard lock(runtime().mutex);
  runtime().alive.erase(&stream);
}

void fake_cuda_refuse_context() { fake_cuda_driver_refuse(cudaErrorIllegalAddress); }

void fake_cuda_fail() { runtime().failed = true; }

void fake_cuda_leave_an_error() { last_error = cudaErrorInvalidValue; }
int fake_cuda_last_error() { return last_error; }

int fake_cuda_contexts_made() { return fake_cuda_driver_contexts(); }
int fake_cuda_current_device() { return fake_cuda_driver_device(); }

}  // namespace stoker::testing

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    default:
      return "cudaErrorFake";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    default:
      return "fake";
  }
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaMalloc(void** data, size_t bytes) {
  return call("cudaMalloc", [&] { return allocate(data, bytes, MemoryKind::device); });
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  int policy = MPOL_DEFAULT;
  syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0);
  if (policy == MPOL_PREFERRED) count("node preferred");
  return call("cudaHostAlloc", [&] { return allocate(data, bytes, MemoryKind::pinned); });
}
cudaError_t cudaFree(void* data) {
  return call("cudaFree", [&] { return release(data, MemoryKind::device); });
}
cudaError_t cudaFreeHost(void* data) {
  return call("cudaFreeHost", [&] { return release(data, MemoryKind::pinned); });
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return call("cudaMemGetInfo", [&] {
    *free_bytes = size_t{3} << 20;
    *total_bytes = size_t{8} << 30;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] {
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = reinterpret_cast<cudaStream_t>(&made_here(runtime().device->make_stream()));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&] {
    FakeRuntime& fake = runtime();
    Stream& gone = stream_of(stream);
    std::lock_guard lock(fake.mutex);
    fake.alive.erase(&gone);
    ++fake.ending;
    // As in CUDA, queued work continues after the call.
    std::thread([&fake, &gone] {
      delete &gone;
      std::lock_guard over(fake.mutex);
      --fake.ending;
      fake.ended.notify_all();
    }).detach();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&] {
    stream_of(stream).synchronize();
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [] {
    // Waits only for work that the plugin has no other way to wait for.
    for (const auto& stream : runtime().others) stream->synchronize();
    wait_for_destroyed_streams();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", [&] {
    if (stream == cudaStreamLegacy) runtime().streams->legacy_waits_for_threads();
    stream_of(stream).wait(event_of(event));
    return cudaSuccess;
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call("cudaLaunchHostFunc", [&] {
    stream_of(stream).call([function, data] {
      in_host_function = true;
      function(data);
      in_host_function = false;
    });
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] {
    if (kind == cudaMemcpyHostToDevice) check_pinned(source, bytes);
    if (kind == cudaMemcpyDeviceToHost) check_pinned(target, bytes);
    stream_of(stream).copy(target, source, bytes, CopyKind::host_to_device);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&] {
    const bool timing = (flags & cudaEventDisableTiming) == 0;
    if (timing) count("event with timing");
    *event = reinterpret_cast<cudaEvent_t>(runtime().device->make_event(timing).release());
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", [&] {
    delete &event_of(event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] {
    stream_of(stream).record(event_of(event));
    return cudaSuccess;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery",
              [&] { return event_of(event).query() ? cudaSuccess : cudaErrorNotReady; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&] {
    event_of(event).synchronize();
    return cudaSuccess;
  });
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&] {
    *ms = static_cast<float>(event_of(end).elapsed_ms(event_of(start)));
    return cudaSuccess;
  });
}
}
