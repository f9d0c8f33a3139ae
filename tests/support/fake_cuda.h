// A CUDA driver (libcuda.so.1) and runtime (libcudart.so) without a GPU, for the plugin as it was
// compiled: streams are threads, memory is a FakeDevice's, copies and events are late, and misuse
// is counted. Tests control it with these functions; the runtime is FakeDevice behind CUDA's C
// interface.
//
// The driver reads the environment at each call: FAKE_CUDA_DEVICES (2), FAKE_CUDA_DRIVER (13000),
// FAKE_CUDA_INIT (0: what cuInit returns), FAKE_CUDA_COMPUTE (90). Like the real one it has no
// devices if CUDA_VISIBLE_DEVICES is empty, and otherwise those that it names ("1,0"), in its
// order.
// device when CUDA_VISIBLE_DEVICES is empty, and those that it names ("1,0") in its order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/fake_device.h"

namespace stoker::testing {

// Makes a new device and resets the counts. REQUIRES: no object of the former one is alive.
void reset_fake_cuda(const FakeDeviceOptions& options = {});
FakeDevice& fake_cuda_device();

// Returns how often a runtime function was called ("cudaStreamSynchronize"), or how often it was
// misused in a way that CUDA does not always detect: "no context" (a call that would have created
// one on GPU 0), "in a host function", "pageable copy" (host memory that is not pinned). Also
// "event with timing", and "node preferred" (pinned memory requested from a NUMA node).
int64_t fake_cuda_count(const std::string& what);

// Replaces all kernels whose mangled name contains `part_of_name` by `work`, which gets the
// addresses of copies of its arguments, whose sizes are `bytes`. Kept over resets. The kernels of
// staging/ are replaced by their twins without it.
void fake_cuda_kernel(const std::string& part_of_name, std::vector<size_t> bytes,
                      std::function<void(void** arguments)> work);

// A stream of another library: its address is its cudaStream_t. When its owner destroys it, calls
// with its handle are refused with cudaErrorInvalidResourceHandle, while queued work continues; the
// object itself stays until the next reset.
Stream& fake_cuda_others_stream();
void fake_cuda_destroy_others_stream(Stream& stream);

// Until the next reset, makes cudaHostAlloc and cudaMalloc return cudaErrorMemoryAllocation.
void fake_cuda_refuse_memory(bool refuse);

// Until the next reset, making the context current fails: cudaErrorIllegalAddress.
void fake_cuda_refuse_context();

// Until the next reset, every call fails immediately with cudaErrorIllegalAddress, while queued
// work continues, as on a GPU that has failed.
void fake_cuda_fail();

// Leaves an error of another library's call on the calling thread, for cudaGetLastError().
void fake_cuda_leave_an_error();
int fake_cuda_last_error();  // what cudaGetLastError() would return on this thread; 0: none

// Return how often a context was retained, and the calling thread's current one (-1: none).
int fake_cuda_contexts_made();
int fake_cuda_current_device();

}  // namespace stoker::testing
