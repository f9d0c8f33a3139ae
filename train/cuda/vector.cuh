// How kernels read and write values: V neighbours at a time, converted to and from fp32, 16 bytes
// if the shape allows it; and sums over a block in a fixed tree. Device code.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "staging/cuda_launch.h"
#include "train/cuda/kernels.h"
#include "train/device/arithmetic_step.h"

namespace stoker::cuda {

using device::Bf16;

constexpr int kThreads = 256;

template <typename Number, int V>
struct alignas(sizeof(Number) * V) Packed {
  Number value[V];
};

template <int V, typename Number>
__device__ __forceinline__ Packed<Number, V> load_packed(const Number* from) {
  return *reinterpret_cast<const Packed<Number, V>*>(from);
}

template <int V, typename Number>
__device__ __forceinline__ void load(const Number* from, float (&out)[V]) {
  const Packed<Number, V> packed = load_packed<V>(from);
#pragma unroll
  for (int i = 0; i < V; ++i) out[i] = device::to_float(packed.value[i]);
}

template <typename Number, int V>
__device__ __forceinline__ Packed<Number, V> packed(const float (&values)[V]) {
  Packed<Number, V> out;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    if constexpr (sizeof(Number) == sizeof(Bf16)) {
      out.value[i].bits = __bfloat16_as_ushort(__float2bfloat16_rn(values[i]));
    } else {
      out.value[i] = values[i];
    }
  }
  return out;
}

template <typename Number, int V>
__device__ __forceinline__ void store(Number* to, const float (&values)[V]) {
  *reinterpret_cast<Packed<Number, V>*>(to) = packed<Number>(values);
}

// Returns the sum of all threads' values to every thread: a tree over lanes, then a sum over warps.
// Afterwards the shared memory is free for the next call.
template <typename Value, typename Combine>
__device__ Value block_reduce(Value value, Combine combine, Value* shared /* of 32 */) {
  for (int lane = 16; lane > 0; lane /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, lane));
  }
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (threadIdx.x % 32 == 0) shared[warp] = value;
  __syncthreads();
  Value total = shared[0];
  for (int w = 1; w < warps; ++w) total = combine(total, shared[w]);
  __syncthreads();
  return total;
}

struct Sum {
  template <typename Value>
  __device__ Value operator()(Value a, Value b) const {
    return a + b;
  }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// The number of values in 16 bytes, the largest width of a read or write.
template <typename Number>
constexpr int kWide = 16 / sizeof(Number);

// Calls visit(Number{}, integral_constant<int, V>{}) for the type, with V = kWide if that divides
// `multiple_of`, else 1.
template <typename Visit>
void with_width(Precision type, int64_t multiple_of, Visit visit) {
  if (type == Precision::bf16) {
    if (multiple_of % kWide<Bf16> == 0) {
      visit(Bf16{}, std::integral_constant<int, kWide<Bf16>>{});
    } else {
      visit(Bf16{}, std::integral_constant<int, 1>{});
    }
  } else if (multiple_of % kWide<float> == 0) {
    visit(float{}, std::integral_constant<int, kWide<float>>{});
  } else {
    visit(float{}, std::integral_constant<int, 1>{});
  }
}

// visit(Number{})
template <typename Visit>
void with_number(Precision type, Visit visit) {
  if (type == Precision::bf16) {
    visit(Bf16{});
  } else {
    visit(float{});
  }
}

// The thread's first item, and the distance to its next one.
__device__ __forceinline__ uint32_t first_item() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ uint32_t item_step() { return gridDim.x * blockDim.x; }

// Returns the blocks for `items` threads, at most `most` (the kernel loops).
inline unsigned blocks_for(int64_t items, int64_t most = 1 << 16) {
  const int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

// Returns how many blocks of kThreads the current GPU runs at a time: a grid of this size has no
// second wave.
template <typename... Parameters>
unsigned resident_blocks(void (*kernel)(Parameters...)) {
  int gpu = 0, multiprocessors = 0, per_multiprocessor = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu),
        "cudaDeviceGetAttribute");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, kThreads, 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return static_cast<unsigned>(multiprocessors * per_multiprocessor);
}

// Checks the number of items, because kernels that divide an item's index use 32 bits.
inline uint32_t counted(int64_t items, const char* what) {
  if (items >= (int64_t{1} << 31)) {
    throw std::runtime_error(std::string(what) + ": " + std::to_string(items) +
                             " items are more than a kernel counts; use a smaller batch");
  }
  return static_cast<uint32_t>(items);
}

// Calls launch_kernel() and throws on an error.
template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            Arguments... arguments) {
  check(launch_kernel(stream, kernel, grid, block, arguments...), "cudaLaunchKernelEx");
}

}  // namespace stoker::cuda
