// Shared by the two halves of the fake CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "staging/device.h"

namespace stoker::testing {

// Counts a call of `name` and runs `work`, unless CUDA would refuse it now.
cudaError_t fake_cuda_call(const char* name, const std::function<cudaError_t()>& work);

// Throws FakeCudaNoStream if the stream was destroyed.
Stream& fake_cuda_stream(cudaStream_t stream);
struct FakeCudaNoStream {};

}  // namespace stoker::testing
