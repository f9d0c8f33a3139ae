// Helpers to time a convolution's plans: the sizes of its operands, and our pass over the output
// that a fused plan saves. Threads: one at a time; the stream's GPU is current. Errors:
// std::runtime_error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/device/ops.h"

namespace stoker {

// Returns the bytes of a, b and out, in the order of DeviceConv::run().
std::vector<int64_t> operand_bytes(const ConvShape& shape, ConvPass pass);

// The pass over the output that a batch norm makes if the convolution has not summed it. `scratch`
// must be zero at first.
int64_t sum_pass_scratch_bytes(const ConvShape& shape);
void queue_sum_pass(cudaStream_t stream, const ConvShape& shape, const void* y, std::byte* scratch);
// Returns its milliseconds; 0 if there is no memory to time it.
float sum_pass_ms(cudaStream_t stream, const ConvShape& shape);

}  // namespace stoker
