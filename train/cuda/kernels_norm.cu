// Batch norm forward, and sums over pixels.
#include "train/cuda/channels.cuh"

namespace stoker::cuda {
namespace {

constexpr int kBlocks = 4;  // per multiprocessor; limits the kernels' registers

// Sums x - origin and its square; origin: the first pixel's values, or 0. finish(channel, sums)
// runs once per channel, in one of the blocks, when all sums are complete.
template <typename Number, int V, typename Finish>
__global__ void __launch_bounds__(kThreads, kBlocks)
    sum_kernel(int64_t pixels, int channels, bool centred, const Number* __restrict__ x,
               PartialSums partial, Finish finish) {
  const int first = first_channel(V);
  float2 sums[V] = {};
  if (first < channels) {
    float origin[V] = {};
    if (centred) load(x + first, origin);
    device::Moments moments[V];
    const Walk walk = walk_of(pixels, channels, first);
#pragma unroll 4
    for (int64_t at = walk.begin; at < walk.end; at += walk.step) {
      float values[V];
      load(x + at, values);
#pragma unroll
      for (int i = 0; i < V; ++i) moments[i].add(values[i], origin[i]);
    }
#pragma unroll
    for (int i = 0; i < V; ++i) sums[i] = {moments[i].sum, moments[i].squares};
  }
  sum_over_blocks<V>(sums, channels, partial, finish);
}

// Computes a channel's statistics from the sums of x - origin and of its square.
__device__ inline device::NormStatistics statistics_of(const NormShape& s, const double2& sum,
                                                       float origin) {
  return device::norm_statistics(sum.x, sum.y, origin, static_cast<double>(s.pixels));
}
// The same from the sums that the convolution has computed: of x itself, without an origin.
__device__ inline device::NormStatistics given_statistics(const NormShape& s, const NormForward& a,
                                                          int c) {
  return statistics_of(s, {a.sums[c], a.sums[s.channels + c]}, 0);
}

// Computes a channel's planes and moments.
__device__ inline void finish_channel(const NormShape& s, const NormForward& a, int c,
                                      const device::NormStatistics& of) {
  const device::NormChannel n =
      device::norm_channel(of, s.eps, a.gamma[c], a.beta[c], a.running_mean[c]);
  a.planes[static_cast<int>(NormPlane::mean) * s.channels + c] = n.mean;
  a.planes[static_cast<int>(NormPlane::inverse) * s.channels + c] = n.inverse;
  a.planes[static_cast<int>(NormPlane::scale) * s.channels + c] = n.scale;
  a.planes[static_cast<int>(NormPlane::shift) * s.channels + c] = n.shift;
  a.moments[c] = n.distance;
  a.moments[s.channels + c] = n.moment;
}

template <typename Number>
struct FinishForward {
  NormShape s;
  NormForward a;

  __device__ void operator()(int c, const double2& sum) const {
    const float origin = device::to_float(static_cast<const Number*>(a.x)[c]);
    finish_channel(s, a, c, statistics_of(s, sum, origin));
  }
};

__global__ void __launch_bounds__(kThreads) finish_given(NormShape s, NormForward a) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c < s.channels) finish_channel(s, a, c, given_statistics(s, a, c));
}

// The part of a replica for the others.
struct OwnStatistics {
  float* own;
  int channels;

  __device__ void write(int c, const device::NormStatistics& of) const {
    own[c] = static_cast<float>(of.mean);
    own[channels + c] = static_cast<float>(of.variance);
  }
};

template <typename Number>
struct FinishOwn {
  NormShape s;
  const Number* x;
  OwnStatistics to;

  __device__ void operator()(int c, const double2& sum) const {
    to.write(c, statistics_of(s, sum, device::to_float(x[c])));
  }
};

__global__ void __launch_bounds__(kThreads)
    finish_own_given(NormShape s, NormForward a, OwnStatistics to) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c < s.channels) to.write(c, given_statistics(s, a, c));
}

__global__ void __launch_bounds__(kThreads)
    finish_united(NormShape s, NormForward a, NormReplicas all) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c < s.channels) finish_channel(s, a, c, device::united_statistics(all, s.channels, c));
}

struct FinishSums {
  float* sums;

  __device__ void operator()(int c, const double2& sum) const {
    sums[c] = static_cast<float>(sum.x);
  }
};

// Writes y = activation(x * scale + shift + residual), from the last pixel to the first.
template <typename Number, int V, Activation kKind>
__device__ __forceinline__ void apply_pixels(const NormShape& s, const NormForward& a, int first,
                                             const float (&scale)[V], const float (&shift)[V]) {
  const auto* x = static_cast<const Number*>(a.x);
  const auto* residual = static_cast<const Number*>(a.residual);
  auto* y = static_cast<Number*>(a.y);
  const Walk walk = walk_of(s.pixels, s.channels, first);
  for (int64_t at = walk.last; at >= 0; at -= kAhead * walk.step) {
    Packed<Number, V> seen[kAhead] = {}, added[kAhead] = {};
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t here = at - u * walk.step;
      if (here < 0) continue;
      seen[u] = load_packed<V>(x + here);
      if (residual != nullptr) added[u] = load_packed<V>(residual + here);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t here = at - u * walk.step;
      if (here < 0) continue;
      float values[V];
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const float t = device::norm_value(device::to_float(seen[u].value[i]), scale[i], shift[i]) +
                        device::to_float(added[u].value[i]);
        values[i] = device::activate(kKind, t);
      }
      const Packed<Number, V> out = packed<Number>(values);
      *reinterpret_cast<Packed<Number, V>*>(y + here) = out;
      if (kKind != Activation::relu || a.mask == nullptr) continue;
      unsigned kept = 0;
#pragma unroll
      for (int i = 0; i < V; ++i) kept |= device::to_float(out.value[i]) > 0 ? 1u << i : 0u;
      a.mask[here / V] = static_cast<uint8_t>(kept);
    }
  }
}

template <typename Number, int V, Activation kKind>
__global__ void __launch_bounds__(kThreads, kBlocks) apply_kernel(NormShape s, NormForward a) {
  const int first = first_channel(V);
  if (first >= s.channels) return;
  float scale[V], shift[V];
  load(a.planes + static_cast<int>(NormPlane::scale) * s.channels + first, scale);
  load(a.planes + static_cast<int>(NormPlane::shift) * s.channels + first, shift);
  apply_pixels<Number, V, kKind>(s, a, first, scale, shift);
}

// Applies the running statistics, whose tensors are not aligned.
template <typename Number, int V, Activation kKind>
__global__ void __launch_bounds__(kThreads, kBlocks) inference_kernel(NormShape s, NormForward a) {
  const int first = first_channel(V);
  if (first >= s.channels) return;
  float scale[V], shift[V];
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const int c = first + i;
    scale[i] = a.gamma[c] / sqrtf(a.running_variance[c] + s.eps);
    shift[i] = a.beta[c] - a.running_mean[c] * scale[i];
  }
  apply_pixels<Number, V, kKind>(s, a, first, scale, shift);
}

// Sums x - its first pixel, and the square; then `finish` runs for each channel.
template <typename Number, int V, typename Finish>
void sum_centred(cudaStream_t stream, const NormShape& s, const NormForward& a, unsigned* tickets,
                 const Finish& finish) {
  const auto sum = sum_kernel<Number, V, Finish>;
  const Tile tile = sum_tile_of(s.pixels, s.channels, V, resident_blocks(sum));
  launch(stream, sum, tile.grid, tile.block, s.pixels, s.channels, true,
         static_cast<const Number*>(a.x), partial_sums(a.scratch, s.channels, tickets), finish);
}

template <typename Number, int V>
void apply_planes(cudaStream_t stream, const NormShape& s, const NormForward& a) {
  with_activation(s.activation, [&](auto kind) {
    const auto apply = apply_kernel<Number, V, decltype(kind)::value>;
    const Tile all = tile_of(s.pixels, s.channels, V, resident_blocks(apply));
    launch(stream, apply, all.grid, all.block, s, a);
  });
}

}  // namespace

void norm_training(cudaStream_t stream, const NormShape& s, const NormForward& a,
                   unsigned* tickets) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    if (a.sums != nullptr) {
      launch(stream, finish_given, blocks_for(s.channels), kThreads, s, a);
    } else {
      sum_centred<Number, kWidth>(stream, s, a, tickets, FinishForward<Number>{s, a});
    }
    apply_planes<Number, kWidth>(stream, s, a);
  });
}

void norm_statistics(cudaStream_t stream, const NormShape& s, const NormForward& a, float* own,
                     unsigned* tickets) {
  const OwnStatistics to{own, s.channels};
  if (a.sums != nullptr) {
    return launch(stream, finish_own_given, blocks_for(s.channels), kThreads, s, a, to);
  }
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    sum_centred<Number, decltype(width)::value>(
        stream, s, a, tickets, FinishOwn<Number>{s, static_cast<const Number*>(a.x), to});
  });
}

void norm_united(cudaStream_t stream, const NormShape& s, const NormForward& a,
                 const NormReplicas& all) {
  launch(stream, finish_united, blocks_for(s.channels), kThreads, s, a, all);
  with_width(s.type, s.channels, [&](auto number, auto width) {
    apply_planes<decltype(number), decltype(width)::value>(stream, s, a);
  });
}

void norm_inference(cudaStream_t stream, const NormShape& s, const NormForward& a) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    with_activation(s.activation, [&](auto kind) {
      const auto apply = inference_kernel<Number, kWidth, decltype(kind)::value>;
      const Tile all = tile_of(s.pixels, s.channels, kWidth, resident_blocks(apply));
      launch(stream, apply, all.grid, all.block, s, a);
    });
  });
}

void sum_pixels(cudaStream_t stream, int64_t pixels, int channels, Precision type, const void* dy,
                float* sums, void* scratch, unsigned* tickets) {
  with_width(type, channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const auto sum = sum_kernel<Number, kWidth, FinishSums>;
    const Tile tile = sum_tile_of(pixels, channels, kWidth, resident_blocks(sum));
    launch(stream, sum, tile.grid, tile.block, pixels, channels, false,
           static_cast<const Number*>(dy), partial_sums(scratch, channels, tickets),
           FinishSums{sums});
  });
}

}  // namespace stoker::cuda
