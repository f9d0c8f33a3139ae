// Pooling, and copies and padding of channels.
#include <numeric>

#include "train/cuda/vector.cuh"

namespace stoker::cuda {
namespace {

// A thread handles V channels of one output pixel.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    max_pool_kernel(uint32_t items, PoolShape s, const Number* __restrict__ x,
                    Number* __restrict__ y, uint8_t* __restrict__ argmax) {
  const uint32_t groups = s.channels / V;
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t pixel = item / groups, first = item % groups * V;
    const int out_x = static_cast<int>(pixel % s.out_width);
    const int out_y = static_cast<int>(pixel / s.out_width % s.out_height);
    const int64_t row = pixel / s.out_width / s.out_height;
    float best[V] = {};
    Packed<uint8_t, V> won = {};
    bool none = true;
    const int top = out_y * s.stride - s.padding.height, left = out_x * s.stride - s.padding.width;
    const device::PoolSpan down = device::pool_window(device::pool_rows(s), out_y);
    const device::PoolSpan across = device::pool_window(device::pool_columns(s), out_x);
    for (int in_y = down.begin; in_y < down.end; ++in_y) {
#pragma unroll 1  // more values at a time take too many registers
      for (int in_x = across.begin; in_x < across.end; ++in_x) {
        float values[V];
        load(x + ((row * s.in_height + in_y) * s.in_width + in_x) * s.channels + first, values);
        const int tap = (in_y - top) * s.kernel.width + in_x - left;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (!device::wins(values[v], best[v], none)) continue;
          best[v] = values[v];
          won.value[v] = static_cast<uint8_t>(tap);
        }
        none = false;
      }
    }
    store(y + static_cast<int64_t>(item) * V, best);
    *reinterpret_cast<Packed<uint8_t, V>*>(argmax + static_cast<int64_t>(item) * V) = won;
  }
}

// A thread handles V channels of one input pixel and visits every window that contains it.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    max_pool_backward_kernel(uint32_t items, PoolShape s, const Number* __restrict__ dy,
                             const uint8_t* __restrict__ argmax, Number* __restrict__ dx) {
  const uint32_t groups = s.channels / V;
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t pixel = item / groups, first = item % groups * V;
    const int x = static_cast<int>(pixel % s.in_width);
    const int y = static_cast<int>(pixel / s.in_width % s.in_height);
    const int64_t row = pixel / s.in_width / s.in_height;
    float sum[V] = {};
    const device::PoolSpan down = device::pool_readers(device::pool_rows(s), y);
    const device::PoolSpan across = device::pool_readers(device::pool_columns(s), x);
    for (int oy = down.begin; oy < down.end; ++oy) {
#pragma unroll 1  // more windows at a time take too many registers
      for (int ox = across.begin; ox < across.end; ++ox) {
        const int tap = (y + s.padding.height - oy * s.stride) * s.kernel.width + x +
                        s.padding.width - ox * s.stride;
        const int64_t at = ((row * s.out_height + oy) * s.out_width + ox) * s.channels + first;
        float values[V];
        load(dy + at, values);
        const auto won = *reinterpret_cast<const Packed<uint8_t, V>*>(argmax + at);
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (won.value[v] == tap) sum[v] += values[v];
        }
      }
    }
    store(dx + static_cast<int64_t>(item) * V, sum);
  }
}

// A thread handles V channels of one output pixel.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    average_kernel(uint32_t items, PoolShape s, const Number* __restrict__ x,
                   Number* __restrict__ y) {
  const uint32_t groups = s.channels / V;
  const device::PoolAxis rows = device::pool_rows(s), columns = device::pool_columns(s);
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t pixel = item / groups, first = item % groups * V;
    const int64_t row = pixel / s.out_width / s.out_height;
    const device::PoolSpan down =
        device::pool_window(rows, static_cast<int>(pixel / s.out_width % s.out_height));
    const device::PoolSpan across =
        device::pool_window(columns, static_cast<int>(pixel % s.out_width));
    float sum[V] = {};
    for (int in_y = down.begin; in_y < down.end; ++in_y) {
      const Number* from = x + (row * s.in_height + in_y) * s.in_width * s.channels + first;
#pragma unroll 4
      for (int in_x = across.begin; in_x < across.end; ++in_x) {
        float values[V];
        load(from + static_cast<int64_t>(in_x) * s.channels, values);
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] += values[v];
      }
    }
    const auto count = static_cast<float>(device::pool_divisor(rows, down) *
                                          device::pool_divisor(columns, across));
#pragma unroll
    for (int v = 0; v < V; ++v) sum[v] /= count;
    store(y + static_cast<int64_t>(item) * V, sum);
  }
}

// A thread handles V channels of one input pixel and visits every window that contains it.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    average_backward_kernel(uint32_t items, PoolShape s, const Number* __restrict__ dy,
                            Number* __restrict__ dx) {
  const uint32_t groups = s.channels / V;
  const device::PoolAxis rows = device::pool_rows(s), columns = device::pool_columns(s);
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t pixel = item / groups, first = item % groups * V;
    const int64_t row = pixel / s.in_width / s.in_height;
    const device::PoolSpan down =
        device::pool_readers(rows, static_cast<int>(pixel / s.in_width % s.in_height));
    const device::PoolSpan across =
        device::pool_readers(columns, static_cast<int>(pixel % s.in_width));
    float sum[V] = {};
    for (int oy = down.begin; oy < down.end; ++oy) {
      const int height = device::pool_divisor(rows, device::pool_window(rows, oy));
      for (int ox = across.begin; ox < across.end; ++ox) {
        const auto count = static_cast<float>(
            height * device::pool_divisor(columns, device::pool_window(columns, ox)));
        float values[V];
        load(dy + ((row * s.out_height + oy) * s.out_width + ox) * s.channels + first, values);
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] += values[v] / count;
      }
    }
    store(dx + static_cast<int64_t>(item) * V, sum);
  }
}

// A thread copies V channels of one pixel.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    copy_channels_kernel(uint32_t items, ChannelsShape s, const Number* __restrict__ x,
                         Number* __restrict__ y) {
  const uint32_t groups = s.channels / V;
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const int64_t pixel = item / groups;
    const int channel = static_cast<int>(item % groups * V);
    *reinterpret_cast<Packed<Number, V>*>(y + pixel * s.target_channels + s.to + channel) =
        load_packed<V>(x + pixel * s.source_channels + s.from + channel);
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

void max_pool(cudaStream_t stream, const PoolShape& s, const void* x, void* y, uint8_t* argmax) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items =
        counted(int64_t{s.rows} * s.out_height * s.out_width * s.channels / kWidth, "pool");
    launch(stream, max_pool_kernel<Number, kWidth>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(x), static_cast<Number*>(y), argmax);
  });
}

void max_pool_backward(cudaStream_t stream, const PoolShape& s, const void* dy,
                       const uint8_t* argmax, void* dx) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items =
        counted(int64_t{s.rows} * s.in_height * s.in_width * s.channels / kWidth, "pool");
    launch(stream, max_pool_backward_kernel<Number, kWidth>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(dy), argmax, static_cast<Number*>(dx));
  });
}

void average_pool(cudaStream_t stream, const PoolShape& s, const void* x, void* y) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items =
        counted(int64_t{s.rows} * s.out_height * s.out_width * s.channels / kWidth, "pool");
    launch(stream, average_kernel<Number, kWidth>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(x), static_cast<Number*>(y));
  });
}

void average_pool_backward(cudaStream_t stream, const PoolShape& s, const void* dy, void* dx) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items =
        counted(int64_t{s.rows} * s.in_height * s.in_width * s.channels / kWidth, "pool");
    launch(stream, average_backward_kernel<Number, kWidth>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(dy), static_cast<Number*>(dx));
  });
}

void copy_channels(cudaStream_t stream, const ChannelsShape& s, const void* x, void* y) {
  // A group of channels must be aligned on both sides.
  const int divides = std::gcd(std::gcd(s.channels, std::gcd(s.source_channels, s.target_channels)),
                               std::gcd(s.from, s.to));
  with_width(s.type, divides, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items = counted(s.pixels * s.channels / kWidth, "concatenation");
    launch(stream, copy_channels_kernel<Number, kWidth>, blocks_for(items), kThreads, items, s,
           static_cast<const Number*>(x), static_cast<Number*>(y));
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
