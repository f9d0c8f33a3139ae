// What is timed beside a convolution's plans: the sizes of its operands, and the passes of our own
// that a fused plan spares. Threads: one at a time; the stream's GPU is current. Errors:
// std::runtime_error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/device/ops.h"

namespace stoker {

// Bytes of a, b and out, in the order of DeviceConv::run().
std::vector<int64_t> operand_bytes(const ConvShape& shape, ConvPass pass);

// The pass over the output that a batch norm makes where the convolution has left no sums.
// `scratch` holds zeros at first.
int64_t sum_pass_scratch_bytes(const ConvShape& shape);
void queue_sum_pass(cudaStream_t stream, const ConvShape& shape, const void* y, std::byte* scratch);
// Milliseconds of it; 0 where there is no memory to time it.
float sum_pass_ms(cudaStream_t stream, const ConvShape& shape);

}  // namespace stoker
