// Replaces CUDA's own header if kernels and CudaOps are compiled by the host's compiler and run on
// the CPU (cuda_emulator.cc): the part of the language and of the runtime that they use. A block's
// threads take turns in a shuffled order, from one barrier to the next; a thread that misses a
// barrier of its block ends the program. Streams are those of a host device.
#pragma once

#include <math.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
};
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct float2 {
  float x, y;
};
struct double2 {
  double x, y;
};

extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

namespace cuda_emulator {

// A barrier for all threads of the block.
void meet();
// Returns the value that `thread` (its number in the block) passed, once all have. Two barriers.
int64_t said_by(unsigned thread, int64_t own);
bool all_say(bool own);
void run(dim3 grid, dim3 block, const std::function<void()>& thread);
unsigned thread_number();

}  // namespace cuda_emulator

inline void __syncthreads() { cuda_emulator::meet(); }
inline int __syncthreads_and(int predicate) {
  return cuda_emulator::all_say(predicate != 0) ? 1 : 0;
}
// Blocks run one after another, so no fence is needed.
inline void __threadfence() {}
template <typename Value>
Value __ldcg(const Value* from) {
  return *from;
}
inline unsigned atomicInc(unsigned* counter, unsigned most) {
  const unsigned old = *counter;
  *counter = old >= most ? 0 : old + 1;
  return old;
}
using std::min;

template <typename Value>
Value __shfl_xor_sync(unsigned, Value value, int lane) {
  int64_t bits = 0;
  static_assert(sizeof value <= sizeof bits);
  std::memcpy(&bits, &value, sizeof value);
  bits = cuda_emulator::said_by(cuda_emulator::thread_number() ^ static_cast<unsigned>(lane), bits);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorStreamCapture = 900 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
struct CUstream_st;
struct CUgraph_st;
struct CUgraphExec_st;
using cudaStream_t = CUstream_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
// Describes a small GPU, so that small tensors have several splits per block and blocks loop.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, size_t) {
  *blocks = 3;
  return cudaSuccess;
}
struct cudaFuncAttributes {};
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel) {  // there is nothing to load
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);

namespace cuda_emulator {
void queue(cudaStream_t stream, std::function<void()> work);
bool launchable(const cudaLaunchConfig_t& config);
}  // namespace cuda_emulator

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  if (!cuda_emulator::launchable(*config)) return cudaErrorInvalidValue;
  cuda_emulator::queue(config->stream, [=, grid = config->gridDim, block = config->blockDim] {
    cuda_emulator::run(grid, block, [&] { kernel(arguments...); });
  });
  return cudaSuccess;
}
