// Batch norm backward.
#include "train/cuda_channels.cuh"

namespace stoker::cuda {
namespace {

using device::NormSlope;

__global__ void finish_backward(NormShape s, NormBackward a, const float2* partial, int splits,
                                float* slopes) {
  const double2 sum = sum_splits(partial, s.channels, splits);
  if (!finishes(s.channels)) return;
  const int c = blockIdx.x * 32 + threadIdx.x;
  const NormSlope n = device::norm_slope(
      sum.x, sum.y, static_cast<double>(s.pixels),
      a.planes[static_cast<int>(NormPlane::mean) * s.channels + c],
      a.planes[static_cast<int>(NormPlane::inverse) * s.channels + c], a.gamma[c]);
  a.dgamma[c] = n.dgamma;
  a.dbeta[c] = n.dbeta;
  slopes[c] = n.a;
  slopes[s.channels + c] = n.b;
  slopes[2 * s.channels + c] = n.c;
}

// What arrives behind the activation, for V channels at `at`.
template <typename Number, int V, Activation kKind>
__device__ __forceinline__ void incoming(const NormShape& s, const NormBackward& a, int64_t at,
                                         const float (&x)[V], const float (&scale)[V],
                                         const float (&shift)[V], float (&g)[V]) {
  float y[V] = {}, second[V] = {};
  load(static_cast<const Number*>(a.dy) + at, g);
  if (a.dy2 != nullptr) load(static_cast<const Number*>(a.dy2) + at, second);
  if (a.y != nullptr) load(static_cast<const Number*>(a.y) + at, y);
  NormShape shape = s;
  shape.activation = kKind;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    g[i] = device::gradient_behind(shape, a.y != nullptr, g[i] + second[i], x[i], y[i], scale[i],
                                   shift[i]);
  }
}

template <int V>
__device__ __forceinline__ void load_plane(const NormShape& s, const float* planes, NormPlane which,
                                           int first, float (&out)[V]) {
#pragma unroll
  for (int i = 0; i < V; ++i) out[i] = planes[static_cast<int>(which) * s.channels + first + i];
}

// Sums of the gradient g and of g * (x - mean); leaves g for the residual. dy may be dresidual.
template <typename Number, int V, Activation kKind>
__global__ void __launch_bounds__(kThreads)
    backward_sums(NormShape s, NormBackward a, float2* partial) {
  const int first = first_channel(V);
  float2 sums[V] = {};
  if (first < s.channels) {
    float scale[V], shift[V], mean[V];
    load_plane(s, a.planes, NormPlane::scale, first, scale);
    load_plane(s, a.planes, NormPlane::shift, first, shift);
    load_plane(s, a.planes, NormPlane::mean, first, mean);
    const int64_t step = pixel_step();
    for (int64_t p = first_pixel(); p < s.pixels; p += kAhead * step) {
      float x[kAhead][V] = {}, g[kAhead][V] = {};
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t at = (p + u * step) * s.channels + first;
        if (p + u * step >= s.pixels) continue;
        load(static_cast<const Number*>(a.x) + at, x[u]);
        incoming<Number, V, kKind>(s, a, at, x[u], scale, shift, g[u]);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t at = (p + u * step) * s.channels + first;
        if (p + u * step >= s.pixels) continue;
        if (a.dresidual != nullptr) store(static_cast<Number*>(a.dresidual) + at, g[u]);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          sums[i].x += g[u][i];
          sums[i].y += g[u][i] * (x[u][i] - mean[i]);
        }
      }
    }
  }
  write_partial<V>(sums, s.channels, partial);
}

// dx = a * g + b * x + c. dx may be dy.
template <typename Number, int V, Activation kKind>
__global__ void __launch_bounds__(kThreads)
    backward_apply(NormShape s, NormBackward a, const float* slopes) {
  const int first = first_channel(V);
  if (first >= s.channels) return;
  float scale[V], shift[V], slope_a[V], slope_b[V], slope_c[V];
  load_plane(s, a.planes, NormPlane::scale, first, scale);
  load_plane(s, a.planes, NormPlane::shift, first, shift);
#pragma unroll
  for (int i = 0; i < V; ++i) {
    slope_a[i] = slopes[first + i];
    slope_b[i] = slopes[s.channels + first + i];
    slope_c[i] = slopes[2 * s.channels + first + i];
  }
  const int64_t step = pixel_step();
  for (int64_t p = first_pixel(); p < s.pixels; p += kAhead * step) {
    float x[kAhead][V] = {}, g[kAhead][V] = {};
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t at = (p + u * step) * s.channels + first;
      if (p + u * step >= s.pixels) continue;
      load(static_cast<const Number*>(a.x) + at, x[u]);
      if (a.dresidual != nullptr) {
        load(static_cast<const Number*>(a.dresidual) + at, g[u]);
      } else {
        incoming<Number, V, kKind>(s, a, at, x[u], scale, shift, g[u]);
      }
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t at = (p + u * step) * s.channels + first;
      if (p + u * step >= s.pixels) continue;
#pragma unroll
      for (int i = 0; i < V; ++i) {
        g[u][i] = slope_a[i] * g[u][i] + slope_b[i] * x[u][i] + slope_c[i];
      }
      store(static_cast<Number*>(a.dx) + at, g[u]);
    }
  }
}

}  // namespace

void norm_backward(cudaStream_t stream, const NormShape& s, const NormBackward& a) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const Tile tile = tile_of(s.pixels, s.channels, kWidth);
    auto* partial = static_cast<float2*>(a.scratch);
    auto* slopes =
        reinterpret_cast<float*>(partial + static_cast<int64_t>(kUsableSplits) * s.channels);
    with_activation(s.activation, [&](auto kind) {
      constexpr Activation kKind = decltype(kind)::value;
      launch(stream, backward_sums<Number, kWidth, kKind>, tile.grid, tile.block, s, a, partial);
      launch(stream, finish_backward, finish_blocks(s.channels), dim3(32, kFinishLanes), s, a,
             partial, static_cast<int>(tile.grid.y), slopes);
      if (a.dx == nullptr) return;
      launch(stream, backward_apply<Number, kWidth, kKind>, tile.grid, tile.block, s, a, slopes);
    });
  });
}

}  // namespace stoker::cuda
