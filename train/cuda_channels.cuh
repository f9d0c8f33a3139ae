// Sums per channel over (pixels, channels), channels fastest. A thread keeps V channels and walks
// over pixels; a block is a tile of channel groups by pixels, and blocks split the pixels. Sums:
// per thread, then a tree over the block, then over the splits in order. Device code.
#pragma once

#include <algorithm>

#include "train/cuda_vector.cuh"

namespace stoker::cuda {

// The last two of the splits' planes in the scratch hold what the backward pass finishes.
constexpr int kUsableSplits = kMostSplits - 2;

// Pixels that a thread reads before it writes the first of them: outputs may lie over inputs, so
// the compiler cannot move reads before writes itself.
constexpr int kAhead = 2;

struct Tile {
  dim3 grid, block;
};

inline Tile tile_of(int64_t pixels, int channels, int width) {
  const int groups = channels / width;
  int across = 1;
  while (across < groups && across < 32) across *= 2;
  const int down = kThreads / across;
  const int columns = (groups + across - 1) / across;
  constexpr int64_t kPixelsPerThread = 8, kBlocks = 2048;
  const int64_t by_work = (pixels + down * kPixelsPerThread - 1) / (down * kPixelsPerThread);
  const int64_t by_blocks = (kBlocks + columns - 1) / columns;
  const int64_t splits =
      std::max<int64_t>(1, std::min({by_work, by_blocks, int64_t{kUsableSplits}}));
  return {dim3(columns, static_cast<unsigned>(splits)), dim3(across, down)};
}

__device__ __forceinline__ int first_channel(int width) {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * width;
}
__device__ __forceinline__ int64_t first_pixel() {
  return static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
}
__device__ __forceinline__ int64_t pixel_step() {
  return static_cast<int64_t>(gridDim.y) * blockDim.y;
}

// Adds up the block's pixels; row 0 of the block writes this split's partial sums.
template <int V>
__device__ void write_partial(const float2 (&own)[V], int channels, float2* partial) {
  __shared__ float2 shared[V * kThreads];
  const int row = blockDim.x;
  const int at = threadIdx.y * row + threadIdx.x;
#pragma unroll
  for (int i = 0; i < V; ++i) shared[i * kThreads + at] = own[i];
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float2 other = shared[i * kThreads + at + half * row];
      shared[i * kThreads + at].x += other.x;
      shared[i * kThreads + at].y += other.y;
    }
  }
  const int first = first_channel(V);
  if (threadIdx.y != 0 || first >= channels) return;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    partial[static_cast<int64_t>(blockIdx.y) * channels + first + i] = shared[i * kThreads + at];
  }
}

constexpr int kFinishLanes = 8;  // threads per channel in the kernels that add up the splits

// The sum over all splits, complete in lane 0. Blocks of (32 channels, kFinishLanes).
__device__ inline double2 sum_splits(const float2* partial, int channels, int splits) {
  __shared__ double2 shared[kFinishLanes][32];
  const int c = blockIdx.x * 32 + threadIdx.x;
  double2 sum = {0, 0};
  if (c < channels) {
    for (int s = threadIdx.y; s < splits; s += kFinishLanes) {
      const float2 part = partial[static_cast<int64_t>(s) * channels + c];
      sum.x += part.x;
      sum.y += part.y;
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int lane = 1; lane < kFinishLanes && threadIdx.y == 0; ++lane) {
    sum.x += shared[lane][threadIdx.x].x;
    sum.y += shared[lane][threadIdx.x].y;
  }
  return sum;
}

__device__ __forceinline__ bool finishes(int channels) {
  return threadIdx.y == 0 && static_cast<int>(blockIdx.x * 32 + threadIdx.x) < channels;
}

template <typename Visit>  // visit(integral_constant<Activation>)
void with_activation(Activation kind, Visit visit) {
  if (kind == Activation::relu) {
    visit(std::integral_constant<Activation, Activation::relu>{});
  } else if (kind == Activation::gelu) {
    visit(std::integral_constant<Activation, Activation::gelu>{});
  } else {
    visit(std::integral_constant<Activation, Activation::none>{});
  }
}

inline unsigned finish_blocks(int channels) { return static_cast<unsigned>((channels + 31) / 32); }

}  // namespace stoker::cuda
