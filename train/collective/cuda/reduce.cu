#include <cuda_bf16.h>

#include <algorithm>

#include "staging/cuda_launch.h"
#include "train/collective/cuda/reduce.h"

namespace stoker {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

struct alignas(16) Quad {
  float value[4];
};

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>(
      std::clamp<int64_t>((threads + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

// Each element is summed over all buffers, in order, and written by one thread. So the order is
// fixed, and a result may be one of the buffers.
__global__ void __launch_bounds__(kThreads)
    sum_buffers_kernel(const __grid_constant__ BufferSum sum, bool aligned) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t quads = aligned ? (sum.end - sum.begin) / 4 : 0;
  for (int64_t quad = thread; quad < quads; quad += stride) {
    const int64_t at = sum.begin + quad * 4;
    Quad total = *reinterpret_cast<const Quad*>(sum.buffers[0] + at);
    for (int buffer = 1; buffer < sum.buffer_count; ++buffer) {
      const Quad next = *reinterpret_cast<const Quad*>(sum.buffers[buffer] + at);
      for (int i = 0; i < 4; ++i) total.value[i] += next.value[i];
    }
    for (int result = 0; result < sum.result_count; ++result) {
      *reinterpret_cast<Quad*>(sum.results[result] + at) = total;
    }
  }
  for (int64_t at = sum.begin + quads * 4 + thread; at < sum.end; at += stride) {
    float total = sum.buffers[0][at];
    for (int buffer = 1; buffer < sum.buffer_count; ++buffer) total += sum.buffers[buffer][at];
    for (int result = 0; result < sum.result_count; ++result) sum.results[result][at] = total;
  }
}

__global__ void __launch_bounds__(kThreads)
    cast_to_bf16_kernel(const float* from, uint16_t* to, int64_t count) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride) {
    to[i] = __bfloat16_as_ushort(__float2bfloat16_rn(from[i]));
  }
}

__global__ void __launch_bounds__(kThreads)
    cast_to_fp32_kernel(const uint16_t* from, float* to, int64_t count) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride) {
    to[i] = __bfloat162float(__ushort_as_bfloat16(from[i]));
  }
}

bool is_aligned(const BufferSum& sum) {
  const auto fits = [&](const float* values) {
    return reinterpret_cast<uintptr_t>(values + sum.begin) % sizeof(Quad) == 0;
  };
  return std::all_of(sum.buffers.begin(), sum.buffers.begin() + sum.buffer_count, fits) &&
         std::all_of(sum.results.begin(), sum.results.begin() + sum.result_count, fits);
}

}  // namespace

cudaError_t launch_sum_buffers(cudaStream_t stream, const BufferSum& sum) {
  const bool aligned = is_aligned(sum);
  const int64_t count = sum.end - sum.begin;
  return launch_kernel(stream, sum_buffers_kernel, blocks_for(aligned ? count / 4 : count),
                       kThreads, sum, aligned);
}

cudaError_t launch_cast_to_bf16(cudaStream_t stream, const float* from, uint16_t* to,
                                int64_t count) {
  return launch_kernel(stream, cast_to_bf16_kernel, blocks_for(count), kThreads, from, to, count);
}

cudaError_t launch_cast_to_fp32(cudaStream_t stream, const uint16_t* from, float* to,
                                int64_t count) {
  return launch_kernel(stream, cast_to_fp32_kernel, blocks_for(count), kThreads, from, to, count);
}

}  // namespace stoker
