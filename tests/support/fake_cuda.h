// A CUDA driver (libcuda.so.1) and runtime (libcudart.so) without a GPU, for the plugin as it was
// compiled: streams are threads, memory is a FakeDevice's, copies and events are late, misuse is
// counted. The tests hold its strings; the runtime's part is FakeDevice behind CUDA's C interface.
//
// The driver reads the environment at each call: FAKE_CUDA_DEVICES (2), FAKE_CUDA_DRIVER (13000),
// FAKE_CUDA_INIT (0: what cuInit returns), FAKE_CUDA_COMPUTE (90). Like the real one it shows no
// device when CUDA_VISIBLE_DEVICES is empty, and those that it names ("1,0") in its order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/fake_device.h"

namespace stoker::testing {

// A new device for what follows; counts start again. REQUIRES: nothing of the former one is alive.
void reset_fake_cuda(const FakeDeviceOptions& options = {});
FakeDevice& fake_cuda_device();

// How often a runtime function was called ("cudaStreamSynchronize"), and misuse that CUDA would
// punish sometimes: "no context" (a call that would have made one on GPU 0), "in a host function",
// "pageable copy" (host memory that is not pinned). Also "event with timing", and "node preferred"
// (pinned memory that was asked for from a NUMA node).
int64_t fake_cuda_count(const std::string& what);

// What stands for a kernel: `work` gets the addresses of copies of its arguments, whose sizes are
// `bytes`. For all kernels whose mangled name has `part_of_name`. Kept over resets.
void fake_cuda_kernel(const std::string& part_of_name, std::vector<size_t> bytes,
                      std::function<void(void** arguments)> work);

// A stream of somebody else's: its address is its cudaStream_t. When its owner destroys it, calls
// with its handle are refused with cudaErrorInvalidResourceHandle, while what is queued goes on;
// the object itself stays until the next reset.
Stream& fake_cuda_others_stream();
void fake_cuda_destroy_others_stream(Stream& stream);

// Until the next reset, cudaHostAlloc and cudaMalloc refuse with cudaErrorMemoryAllocation.
void fake_cuda_refuse_memory(bool refuse);

// Until the next reset, the context cannot be made current: cudaErrorIllegalAddress.
void fake_cuda_refuse_context();

// Until the next reset, every call fails at once with cudaErrorIllegalAddress, while what is queued
// goes on: as on a GPU that has failed.
void fake_cuda_fail();

// A call of somebody else's fails on the calling thread: cudaGetLastError() would say so.
void fake_cuda_leave_an_error();
int fake_cuda_last_error();  // that cudaGetLastError() would tell the calling thread; 0: none

// How often a context was retained, and the calling thread's current one (-1: none).
int fake_cuda_contexts_made();
int fake_cuda_current_device();

}  // namespace stoker::testing
