// Batch norm forward, and sums over pixels.
#include "train/cuda_channels.cuh"

namespace stoker::cuda {
namespace {

// Sums of x - origin and its square; origin: the first pixel's values, or 0.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(int64_t pixels, int channels, bool centred, const Number* __restrict__ x,
               float2* partial) {
  const int first = first_channel(V);
  float2 sums[V] = {};
  if (first < channels) {
    float origin[V] = {};
    if (centred) load(x + first, origin);
    device::Moments moments[V];
#pragma unroll 4
    for (int64_t p = first_pixel(); p < pixels; p += pixel_step()) {
      float values[V];
      load(x + p * channels + first, values);
#pragma unroll
      for (int i = 0; i < V; ++i) moments[i].add(values[i], origin[i]);
    }
#pragma unroll
    for (int i = 0; i < V; ++i) sums[i] = {moments[i].sum, moments[i].squares};
  }
  write_partial<V>(sums, channels, partial);
}

template <typename Number>
__global__ void finish_forward(NormShape s, NormForward a, const float2* partial, int splits) {
  const double2 sum = sum_splits(partial, s.channels, splits);
  if (!finishes(s.channels)) return;
  const int c = blockIdx.x * 32 + threadIdx.x;
  const float origin = device::to_float(static_cast<const Number*>(a.x)[c]);
  const device::NormChannel n =
      device::norm_channel(sum.x, sum.y, origin, static_cast<double>(s.pixels), s.eps, a.gamma[c],
                           a.beta[c], a.running_mean[c]);
  a.planes[static_cast<int>(NormPlane::mean) * s.channels + c] = n.mean;
  a.planes[static_cast<int>(NormPlane::inverse) * s.channels + c] = n.inverse;
  a.planes[static_cast<int>(NormPlane::scale) * s.channels + c] = n.scale;
  a.planes[static_cast<int>(NormPlane::shift) * s.channels + c] = n.shift;
  a.moments[c] = n.distance;
  a.moments[s.channels + c] = n.moment;
}

__global__ void finish_sums(int channels, const float2* partial, int splits, float* sums) {
  const double2 sum = sum_splits(partial, channels, splits);
  if (finishes(channels)) sums[blockIdx.x * 32 + threadIdx.x] = static_cast<float>(sum.x);
}

// y = activation(x * scale + shift + residual). With `planes` null: running statistics.
template <typename Number, int V, Activation kKind>
__global__ void __launch_bounds__(kThreads) apply_kernel(NormShape s, NormForward a) {
  const int first = first_channel(V);
  if (first >= s.channels) return;
  float scale[V], shift[V];
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const int c = first + i;
    if (a.planes != nullptr) {
      scale[i] = a.planes[static_cast<int>(NormPlane::scale) * s.channels + c];
      shift[i] = a.planes[static_cast<int>(NormPlane::shift) * s.channels + c];
    } else {
      scale[i] = a.gamma[c] / sqrtf(a.running_variance[c] + s.eps);
      shift[i] = a.beta[c] - a.running_mean[c] * scale[i];
    }
  }
  const auto* x = static_cast<const Number*>(a.x);
  const auto* residual = static_cast<const Number*>(a.residual);
  auto* y = static_cast<Number*>(a.y);
  const int64_t step = pixel_step();
  for (int64_t p = first_pixel(); p < s.pixels; p += kAhead * step) {
    float values[kAhead][V] = {}, added[kAhead][V] = {};
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t pixel = p + u * step;
      if (pixel >= s.pixels) continue;
      load(x + pixel * s.channels + first, values[u]);
      if (residual != nullptr) load(residual + pixel * s.channels + first, added[u]);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t pixel = p + u * step;
      if (pixel >= s.pixels) continue;
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const float t = device::norm_value(values[u][i], scale[i], shift[i]) + added[u][i];
        values[u][i] = device::activate(kKind, t);
      }
      store(y + pixel * s.channels + first, values[u]);
    }
  }
}

void apply(cudaStream_t stream, const NormShape& s, const NormForward& a) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const Tile tile = tile_of(s.pixels, s.channels, kWidth);
    with_activation(s.activation, [&](auto kind) {
      launch(stream, apply_kernel<Number, kWidth, decltype(kind)::value>, tile.grid, tile.block, s,
             a);
    });
  });
}

}  // namespace

void norm_training(cudaStream_t stream, const NormShape& s, const NormForward& a) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const Tile tile = tile_of(s.pixels, s.channels, kWidth);
    auto* partial = static_cast<float2*>(a.scratch);
    launch(stream, sum_kernel<Number, kWidth>, tile.grid, tile.block, s.pixels, s.channels, true,
           static_cast<const Number*>(a.x), partial);
    launch(stream, finish_forward<Number>, finish_blocks(s.channels), dim3(32, kFinishLanes), s, a,
           partial, static_cast<int>(tile.grid.y));
  });
  apply(stream, s, a);
}

void norm_inference(cudaStream_t stream, const NormShape& s, const NormForward& a) {
  NormForward running = a;
  running.planes = nullptr;
  apply(stream, s, running);
}

void sum_pixels(cudaStream_t stream, int64_t pixels, int channels, Precision type, const void* dy,
                float* sums, void* scratch) {
  with_width(type, channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const Tile tile = tile_of(pixels, channels, kWidth);
    auto* partial = static_cast<float2*>(scratch);
    launch(stream, sum_kernel<Number, kWidth>, tile.grid, tile.block, pixels, channels, false,
           static_cast<const Number*>(dy), partial);
    launch(stream, finish_sums, finish_blocks(channels), dim3(32, kFinishLanes), channels, partial,
           static_cast<int>(tile.grid.y), sums);
  });
}

}  // namespace stoker::cuda
