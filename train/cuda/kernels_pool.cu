// Pooling and channel padding.
#include "train/cuda/vector.cuh"

namespace stoker::cuda {
namespace {

// A thread handles V channels of one output pixel.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    max_pool_kernel(uint32_t items, PoolShape s, const Number* __restrict__ x,
                    Number* __restrict__ y, uint8_t* __restrict__ taps) {
  const uint32_t groups = s.channels / V;
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t pixel = item / groups, first = item % groups * V;
    const int out_x = static_cast<int>(pixel % s.out_width);
    const int out_y = static_cast<int>(pixel / s.out_width % s.out_height);
    const int64_t row = pixel / s.out_width / s.out_height;
    float best[V] = {};
    Packed<uint8_t, V> won = {};
    bool none = true;
    for (int tap = 0; tap < s.kernel * s.kernel; ++tap) {
      const int in_y = out_y * s.stride + tap / s.kernel - s.padding;
      const int in_x = out_x * s.stride + tap % s.kernel - s.padding;
      if (in_y < 0 || in_y >= s.in_height || in_x < 0 || in_x >= s.in_width) continue;
      float values[V];
      load(x + ((row * s.in_height + in_y) * s.in_width + in_x) * s.channels + first, values);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if (!device::wins(values[v], best[v], none)) continue;
        best[v] = values[v];
        won.value[v] = static_cast<uint8_t>(tap);
      }
      none = false;
    }
    store(y + static_cast<int64_t>(item) * V, best);
    *reinterpret_cast<Packed<uint8_t, V>*>(taps + static_cast<int64_t>(item) * V) = won;
  }
}

// A thread handles V channels of one input pixel and visits every window that contains it.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    max_pool_backward_kernel(uint32_t items, PoolShape s, const Number* __restrict__ dy,
                             const uint8_t* __restrict__ taps, Number* __restrict__ dx) {
  const uint32_t groups = s.channels / V;
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t pixel = item / groups, first = item % groups * V;
    const int x = static_cast<int>(pixel % s.in_width) + s.padding;
    const int y = static_cast<int>(pixel / s.in_width % s.in_height) + s.padding;
    const int64_t row = pixel / s.in_width / s.in_height;
    float sum[V] = {};
    const int first_y = y < s.kernel ? 0 : (y - s.kernel) / s.stride + 1;
    const int first_x = x < s.kernel ? 0 : (x - s.kernel) / s.stride + 1;
    for (int oy = first_y; oy < s.out_height && oy * s.stride <= y; ++oy) {
      for (int ox = first_x; ox < s.out_width && ox * s.stride <= x; ++ox) {
        const int tap = (y - oy * s.stride) * s.kernel + x - ox * s.stride;
        const int64_t at = ((row * s.out_height + oy) * s.out_width + ox) * s.channels + first;
        float values[V];
        load(dy + at, values);
        const auto won = *reinterpret_cast<const Packed<uint8_t, V>*>(taps + at);
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (won.value[v] == tap) sum[v] += values[v];
        }
      }
    }
    store(dx + static_cast<int64_t>(item) * V, sum);
  }
}

template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    average_kernel(uint32_t items, int64_t pixels, int channels, const Number* __restrict__ x,
                   Number* __restrict__ y) {
  const uint32_t groups = channels / V;
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const Number* from = x + item / groups * pixels * channels + item % groups * V;
    float sum[V] = {};
#pragma unroll 4
    for (int64_t p = 0; p < pixels; ++p) {
      float values[V];
      load(from + p * channels, values);
#pragma unroll
      for (int v = 0; v < V; ++v) sum[v] += values[v];
    }
#pragma unroll
    for (int v = 0; v < V; ++v) sum[v] /= static_cast<float>(pixels);
    store(y + static_cast<int64_t>(item) * V, sum);
  }
}

template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    average_backward_kernel(uint32_t items, uint32_t pixels, int channels,
                            const Number* __restrict__ dy, Number* __restrict__ dx) {
  const uint32_t groups = channels / V;
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t row = item / groups / pixels;
    float values[V];
    load(dy + static_cast<int64_t>(row) * channels + item % groups * V, values);
#pragma unroll
    for (int v = 0; v < V; ++v) values[v] /= static_cast<float>(pixels);
    store(dx + static_cast<int64_t>(item) * V, values);
  }
}

template <typename Number>
__global__ void __launch_bounds__(kThreads)
    pad_kernel(uint32_t items, PadShape s, const Number* __restrict__ x, Number* __restrict__ y) {
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t c = item % s.out_channels, pixel = item / s.out_channels;
    const int64_t out_x = pixel % s.out_width, out_y = pixel / s.out_width % s.out_height;
    const int64_t row = pixel / s.out_width / s.out_height;
    const int64_t from = (row * s.in_height + out_y * s.stride) * s.in_width + out_x * s.stride;
    y[item] = static_cast<int>(c) < s.in_channels ? x[from * s.in_channels + c]
                                                  : device::number<Number>(0.0f);
  }
}

template <typename Number>
__global__ void __launch_bounds__(kThreads)
    pad_backward_kernel(uint32_t items, PadShape s, const Number* __restrict__ dy,
                        Number* __restrict__ dx) {
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t c = item % s.in_channels, pixel = item / s.in_channels;
    const int in_x = static_cast<int>(pixel % s.in_width);
    const int in_y = static_cast<int>(pixel / s.in_width % s.in_height);
    const int64_t row = pixel / s.in_width / s.in_height;
    const bool seen = in_x % s.stride == 0 && in_y % s.stride == 0;
    const int64_t from = (row * s.out_height + in_y / s.stride) * s.out_width + in_x / s.stride;
    dx[item] = seen ? dy[from * s.out_channels + c] : device::number<Number>(0.0f);
  }
}

}  // namespace

void max_pool(cudaStream_t stream, const PoolShape& s, const void* x, void* y, uint8_t* taps) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items =
        counted(int64_t{s.rows} * s.out_height * s.out_width * s.channels / kWidth, "pool");
    launch(stream, max_pool_kernel<Number, kWidth>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(x), static_cast<Number*>(y), taps);
  });
}

void max_pool_backward(cudaStream_t stream, const PoolShape& s, const void* dy, const uint8_t* taps,
                       void* dx) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items =
        counted(int64_t{s.rows} * s.in_height * s.in_width * s.channels / kWidth, "pool");
    launch(stream, max_pool_backward_kernel<Number, kWidth>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(dy), taps, static_cast<Number*>(dx));
  });
}

void average_pool(cudaStream_t stream, const PoolShape& s, const void* x, void* y) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items = counted(int64_t{s.rows} * s.channels / kWidth, "pool");
    launch(stream, average_kernel<Number, kWidth>, blocks_for(items), kThreads, items,
           int64_t{s.in_height} * s.in_width, s.channels, static_cast<const Number*>(x),
           static_cast<Number*>(y));
  });
}

void average_pool_backward(cudaStream_t stream, const PoolShape& s, const void* dy, void* dx) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t pixels = counted(int64_t{s.in_height} * s.in_width, "pool");
    const uint32_t items = counted(int64_t{s.rows} * pixels * s.channels / kWidth, "pool");
    launch(stream, average_backward_kernel<Number, kWidth>, blocks_for(items), kThreads, items,
           pixels, s.channels, static_cast<const Number*>(dy), static_cast<Number*>(dx));
  });
}

void pad_channels(cudaStream_t stream, const PadShape& s, const void* x, void* y) {
  const uint32_t items =
      counted(int64_t{s.rows} * s.out_height * s.out_width * s.out_channels, "channel padding");
  with_number(s.type, [&](auto number) {
    using Number = decltype(number);
    launch(stream, pad_kernel<decltype(number)>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(x), static_cast<Number*>(y));
  });
}

void pad_channels_backward(cudaStream_t stream, const PadShape& s, const void* dy, void* dx) {
  const uint32_t items =
      counted(int64_t{s.rows} * s.in_height * s.in_width * s.in_channels, "channel padding");
  with_number(s.type, [&](auto number) {
    using Number = decltype(number);
    launch(stream, pad_backward_kernel<decltype(number)>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(dy), static_cast<Number*>(dx));
  });
}

}  // namespace stoker::cuda
