// Sums per channel over (pixels, channels), channels fastest, and passes over the same tensor. A
// thread keeps V channels and walks over pixels; a block is a tile of channel groups by pixels, and
// the pixels are split over blocks. Sums are first added per thread, then in a tree over the block.
// Then the last block of each group of splits adds up the group, and the last of these blocks adds
// up the groups. The order is always that of the splits, whichever block comes last, so the bits do
// not depend on timing. Device code.
//
// A pass that writes walks from the last pixel to the first, opposite to the sum before it, because
// the pixels that the sum read last may still be in the L2 cache. The convolution that follows
// begins at the first pixel, which was written last.
#pragma once

#include <algorithm>

#include "train/cuda/vector.cuh"

namespace stoker::cuda {

// Pixels that a thread reads before it writes the first of them: outputs may overlap inputs, so the
// compiler cannot move reads before writes itself.
constexpr int kAhead = 2;

constexpr int kMaxGroups = kMaxSplits / kGroupSplits;

struct Tile {
  dim3 grid, block;
};

// `most_blocks`: the blocks that the GPU runs at a time, so that no block waits for another.
inline Tile tile_of(int64_t pixels, int channels, int width, unsigned most_blocks) {
  const int groups = channels / width;
  int across = 1;
  while (across < groups && across < 32) across *= 2;
  const int down = kThreads / across;
  const int columns = (groups + across - 1) / across;
  constexpr int64_t kPixelsPerThread = 8;
  const int64_t by_work = (pixels + down * kPixelsPerThread - 1) / (down * kPixelsPerThread);
  const int64_t by_blocks = most_blocks / columns;
  const int64_t splits = std::max<int64_t>(1, std::min(by_work, by_blocks));
  return {dim3(columns, static_cast<unsigned>(splits)), dim3(across, down)};
}

// Returns a tile whose blocks write partial sums; limited to the space for these.
inline Tile sum_tile_of(int64_t pixels, int channels, int width, unsigned most_blocks) {
  Tile tile = tile_of(pixels, channels, width, most_blocks);
  if (tile.grid.x > kMaxColumns) {
    throw std::runtime_error("sums over pixels: " + std::to_string(channels) +
                             " channels are more than " +
                             std::to_string(kMaxColumns * tile.block.x * width));
  }
  tile.grid.y = std::min(tile.grid.y, static_cast<unsigned>(kMaxSplits));
  return tile;
}

__device__ __forceinline__ int first_channel(int width) {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * width;
}
// The offsets that a thread visits (`first` is its first channel), `step` apart: from `begin` up to
// `end`, exclusive, or in passes that write, from `last` down to 0.
struct Walk {
  int64_t begin, step, end, last;
};
__device__ __forceinline__ Walk walk_of(int64_t pixels, int channels, int first) {
  const int64_t pixel = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  const int64_t step = static_cast<int64_t>(gridDim.y) * blockDim.y;
  return {pixel * channels + first, step * channels, pixels * channels,
          (pixels - 1 - pixel) * channels + first};
}

// The memory of the partial sums: a row of channels per split, and one per group of splits.
struct PartialSums {
  float2* splits;
  double2* groups;
  unsigned* tickets;  // 0 between kernels
};

inline PartialSums partial_sums(void* scratch, int channels, unsigned* tickets) {
  auto* groups = static_cast<double2*>(scratch);
  auto* splits = reinterpret_cast<float2*>(groups + static_cast<int64_t>(kMaxGroups) * channels);
  return {splits, groups, tickets};
}

// Returns the memory after the partial sums: floats that finish() writes for the next kernel.
inline float* behind_sums(const PartialSums& sums, int channels) {
  return reinterpret_cast<float*>(sums.splits + static_cast<int64_t>(kMaxSplits) * channels);
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

// Returns whether this block is the last of `count` that take a ticket. If so, it sees what the
// other blocks have written before, and the counter is 0 again.
__device__ inline bool takes_last_ticket(unsigned* counter, unsigned count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicInc(counter, count - 1) == count - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// Sums the column's channels over `rows` rows. The result is complete in the first of the threads
// that share a channel.
template <typename Pair>
__device__ double2 sum_rows(const Pair* from, int channels, int rows, int width) {
  __shared__ double2 shared[kThreads];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int lanes = kThreads / width, lane = thread / width;
  const int channel = blockIdx.x * width + thread % width;
  double2 sum = {0, 0};
  if (channel < channels) {
#pragma unroll 8
    for (int row = lane; row < rows; row += lanes) {
      const Pair pair = __ldcg(from + static_cast<int64_t>(row) * channels + channel);
      sum.x += pair.x;
      sum.y += pair.y;
    }
  }
  shared[thread] = sum;
  __syncthreads();
  for (int other = 1; other < lanes && lane == 0; ++other) {
    sum.x += shared[other * width + thread].x;
    sum.y += shared[other * width + thread].y;
  }
  __syncthreads();
  return sum;
}

// Every block of the column calls this with its threads' sums; the last block calls finish(channel,
// sums) for each channel of the column.
template <int V, typename Finish>
__device__ void sum_over_blocks(const float2 (&own)[V], int channels, const PartialSums& partial,
                                Finish finish) {
  write_partial<V>(own, channels, partial.splits);
  const unsigned group = blockIdx.y / kGroupSplits;
  const unsigned groups = (gridDim.y + kGroupSplits - 1) / kGroupSplits;
  const unsigned begin = group * kGroupSplits;
  const unsigned members = min(gridDim.y - begin, static_cast<unsigned>(kGroupSplits));
  unsigned* tickets = partial.tickets + blockIdx.x * (1 + kMaxGroups);
  if (!takes_last_ticket(tickets + 1 + group, members)) return;
  const int width = blockDim.x * V;  // channels of the column
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int channel = blockIdx.x * width + thread;
  const bool finishes = thread < width && channel < channels;
  double2 sum = sum_rows(partial.splits + static_cast<int64_t>(begin) * channels, channels,
                         static_cast<int>(members), width);
  if (groups > 1) {
    if (finishes) partial.groups[static_cast<int64_t>(group) * channels + channel] = sum;
    if (!takes_last_ticket(tickets, groups)) return;
    sum = sum_rows(partial.groups, channels, static_cast<int>(groups), width);
  }
  if (finishes) finish(channel, sum);
}

template <typename Visit>  // visit(integral_constant<Activation>)
void with_activation(Activation kind, Visit visit) {
  if (kind == Activation::relu) {
    visit(std::integral_constant<Activation, Activation::relu>{});
  } else if (kind == Activation::gelu) {
    visit(std::integral_constant<Activation, Activation::gelu>{});
  } else if (kind == Activation::none) {
    visit(std::integral_constant<Activation, Activation::none>{});
  } else {
    throw std::logic_error("a batch norm does not fuse this activation");
  }
}

}  // namespace stoker::cuda
