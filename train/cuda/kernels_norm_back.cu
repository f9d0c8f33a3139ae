// Batch norm backward.
#include "train/cuda/channels.cuh"

namespace stoker::cuda {
namespace {

using device::NormSlope;

// The maximum number of channels per thread. With eight, the values per channel need so many
// registers that a multiprocessor runs only two blocks (ptxas for sm_90); with four it runs these.
constexpr int kBackwardWidth = 4, kSumBlocks = 3, kApplyBlocks = 4;

// `replicas`: over how many as large batches the sums go.
__device__ inline NormSlope slope_of(const NormShape& s, const NormBackward& a, int c,
                                     const device::NormSums& of, int replicas) {
  return device::norm_slope(of, static_cast<double>(s.pixels) * replicas,
                            a.planes[static_cast<int>(NormPlane::mean) * s.channels + c],
                            a.planes[static_cast<int>(NormPlane::inverse) * s.channels + c],
                            a.gamma[c]);
}
__device__ inline void write_slopes(const NormSlope& n, int channels, int c, float* slopes) {
  slopes[c] = n.a;
  slopes[channels + c] = n.b;
  slopes[2 * channels + c] = n.c;
}

// Writes the gradients of the replica's own rows, and the slopes, or what it brings to the others
// if it is not alone. One type for both, because every kernel that sums would be compiled for each.
struct FinishBackward {
  NormShape s;
  NormBackward a;
  float* to;
  bool alone;  // else `to` is the replica's place

  __device__ void operator()(int c, const double2& sum) const {
    const NormSlope n = slope_of(s, a, c, {sum.x, sum.y}, 1);
    a.dgamma[c] = n.dgamma;
    a.dbeta[c] = n.dbeta;
    to[c] = alone ? n.a : static_cast<float>(sum.x);
    to[s.channels + c] = alone ? n.b : static_cast<float>(sum.y);
    if (alone) to[2 * s.channels + c] = n.c;
  }
};

__global__ void __launch_bounds__(kThreads)
    finish_united_back(NormShape s, NormBackward a, NormReplicas all, float* slopes) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= s.channels) return;
  const NormSlope n = slope_of(s, a, c, device::united_sums(all, s.channels, c), all.count);
  write_slopes(n, s.channels, c, slopes);
}

// How the activation's slope is found: from a mask, or from x.
enum class Cut : uint8_t { none, mask, relu, gelu };

// The inputs of one pixel. They stay packed until they are needed, which halves the registers.
template <typename Number, int V, Cut kCut, bool kTwo>
struct Incoming {
  Packed<Number, V> x = {}, dy = {}, dy2 = {};
  unsigned kept = 0;

  __device__ __forceinline__ void read(const NormBackward& a, int64_t at) {
    x = load_packed<V>(static_cast<const Number*>(a.x) + at);
    dy = load_packed<V>(static_cast<const Number*>(a.dy) + at);
    if constexpr (kTwo) dy2 = load_packed<V>(static_cast<const Number*>(a.dy2) + at);
    constexpr int kMaskWidth = V == 1 ? 1 : kWide<Number>;
    if constexpr (kCut == Cut::mask) kept = a.mask[at / kMaskWidth] >> at % kMaskWidth;
  }
  __device__ __forceinline__ float x_of(int i) const { return device::to_float(x.value[i]); }
  // Returns the gradient before the activation.
  __device__ __forceinline__ float gradient(int i, float scale, float shift) const {
    float sum = device::to_float(dy.value[i]);
    if constexpr (kTwo) sum += device::to_float(dy2.value[i]);
    constexpr Activation kKind = kCut == Cut::none   ? Activation::none
                                 : kCut == Cut::gelu ? Activation::gelu
                                                     : Activation::relu;
    return device::gradient_behind(kKind, kCut == Cut::mask, (kept >> i & 1u) != 0, sum, x_of(i),
                                   scale, shift);
  }
};

template <int V>
__device__ __forceinline__ void load_plane(const NormShape& s, const float* planes, NormPlane which,
                                           int first, float (&out)[V]) {
  load(planes + static_cast<int>(which) * s.channels + first, out);
}

// Sums the gradient g and g * (x - mean); writes g for the residual. dy may be dresidual.
template <typename Number, int V, Cut kCut, bool kTwo>
__global__ void __launch_bounds__(kThreads, kSumBlocks)
    backward_sums(NormShape s, NormBackward a, PartialSums partial, FinishBackward finish) {
  const int first = first_channel(V);
  float2 sums[V] = {};
  if (first < s.channels) {
    float scale[V], shift[V], mean[V];
    load_plane(s, a.planes, NormPlane::scale, first, scale);
    load_plane(s, a.planes, NormPlane::shift, first, shift);
    load_plane(s, a.planes, NormPlane::mean, first, mean);
    const Walk walk = walk_of(s.pixels, s.channels, first);
    for (int64_t at = walk.begin; at < walk.end; at += kAhead * walk.step) {
      Incoming<Number, V, kCut, kTwo> in[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (at + u * walk.step < walk.end) in[u].read(a, at + u * walk.step);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (at + u * walk.step >= walk.end) continue;
        float g[V];
#pragma unroll
        for (int i = 0; i < V; ++i) {
          g[i] = in[u].gradient(i, scale[i], shift[i]);
          sums[i].x += g[i];
          sums[i].y += g[i] * (in[u].x_of(i) - mean[i]);
        }
        if (a.dresidual == nullptr) continue;
        store(static_cast<Number*>(a.dresidual) + at + u * walk.step, g);
      }
    }
  }
  sum_over_blocks<V>(sums, s.channels, partial, finish);
}

// Writes dx = a * g + b * x + c, from the last pixel to the first. dx may be dy.
template <typename Number, int V, Cut kCut, bool kTwo>
__global__ void __launch_bounds__(kThreads, kApplyBlocks)
    backward_apply(NormShape s, NormBackward a, const float* slopes) {
  const int first = first_channel(V);
  if (first >= s.channels) return;
  float scale[V], shift[V], slope_a[V], slope_b[V], slope_c[V];
  load_plane(s, a.planes, NormPlane::scale, first, scale);
  load_plane(s, a.planes, NormPlane::shift, first, shift);
  load(slopes + first, slope_a);
  load(slopes + s.channels + first, slope_b);
  load(slopes + 2 * s.channels + first, slope_c);
  const Walk walk = walk_of(s.pixels, s.channels, first);
  for (int64_t at = walk.last; at >= 0; at -= kAhead * walk.step) {
    Incoming<Number, V, kCut, kTwo> in[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (at - u * walk.step >= 0) in[u].read(a, at - u * walk.step);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (at - u * walk.step < 0) continue;
      float dx[V];
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const float g = in[u].gradient(i, scale[i], shift[i]);
        dx[i] = slope_a[i] * g + slope_b[i] * in[u].x_of(i) + slope_c[i];
      }
      store(static_cast<Number*>(a.dx) + at - u * walk.step, dx);
    }
  }
}

template <typename Visit>  // visit(integral_constant<Cut>, bool_constant: two gradients)
void with_cut(const NormShape& s, const NormBackward& a, Visit visit) {
  const auto of = [&](auto cut) {
    if (a.dy2 != nullptr) {
      visit(cut, std::true_type{});
    } else {
      visit(cut, std::false_type{});
    }
  };
  if (a.mask != nullptr) return of(std::integral_constant<Cut, Cut::mask>{});
  if (s.activation == Activation::relu) return of(std::integral_constant<Cut, Cut::relu>{});
  if (s.activation == Activation::gelu) return of(std::integral_constant<Cut, Cut::gelu>{});
  of(std::integral_constant<Cut, Cut::none>{});
}

template <typename Visit>  // visit(a Number, integral_constant: channels per thread)
void with_backward_width(const NormShape& s, Visit visit) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    constexpr int kWidth = std::min(decltype(width)::value, kBackwardWidth);
    visit(number, std::integral_constant<int, kWidth>{});
  });
}

template <typename Number, int V>
void sum_gradients(cudaStream_t stream, const NormShape& s, const NormBackward& a,
                   const PartialSums& partial, const FinishBackward& finish) {
  with_cut(s, a, [&](auto cut, auto two) {
    const auto sums = backward_sums<Number, V, decltype(cut)::value, decltype(two)::value>;
    const Tile tile = sum_tile_of(s.pixels, s.channels, V, resident_blocks(sums));
    launch(stream, sums, tile.grid, tile.block, s, a, partial, finish);
  });
}

template <typename Number, int V>
void apply_slopes(cudaStream_t stream, const NormShape& s, const NormBackward& a,
                  const float* slopes) {
  // The residual's gradient already includes the slope of the activation.
  NormShape rest_shape = s;
  NormBackward rest = a;
  if (a.dresidual != nullptr) {
    rest_shape.activation = Activation::none;
    rest.dy = a.dresidual;
    rest.dy2 = nullptr;
    rest.mask = nullptr;
  }
  with_cut(rest_shape, rest, [&](auto cut, auto two) {
    const auto apply = backward_apply<Number, V, decltype(cut)::value, decltype(two)::value>;
    const Tile tile = tile_of(s.pixels, s.channels, V, resident_blocks(apply));
    launch(stream, apply, tile.grid, tile.block, rest_shape, rest, slopes);
  });
}

}  // namespace

void norm_backward(cudaStream_t stream, const NormShape& s, const NormBackward& a,
                   unsigned* tickets) {
  const PartialSums partial = partial_sums(a.scratch, s.channels, tickets);
  float* slopes = behind_sums(partial, s.channels);
  with_backward_width(s, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    sum_gradients<Number, kWidth>(stream, s, a, partial, FinishBackward{s, a, slopes, true});
    if (a.dx != nullptr) apply_slopes<Number, kWidth>(stream, s, a, slopes);
  });
}

void norm_backward_sums(cudaStream_t stream, const NormShape& s, const NormBackward& a, float* own,
                        unsigned* tickets) {
  const PartialSums partial = partial_sums(a.scratch, s.channels, tickets);
  with_backward_width(s, [&](auto number, auto width) {
    sum_gradients<decltype(number), decltype(width)::value>(stream, s, a, partial,
                                                            FinishBackward{s, a, own, false});
  });
}

void norm_backward_united(cudaStream_t stream, const NormShape& s, const NormBackward& a,
                          const NormReplicas& all) {
  float* slopes = behind_sums(partial_sums(a.scratch, s.channels, nullptr), s.channels);
  launch(stream, finish_united_back, blocks_for(s.channels), kThreads, s, a, all, slopes);
  with_backward_width(s, [&](auto number, auto width) {
    apply_slopes<decltype(number), decltype(width)::value>(stream, s, a, slopes);
  });
}

}  // namespace stoker::cuda
