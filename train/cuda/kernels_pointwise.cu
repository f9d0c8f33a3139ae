// Input, activations, additions, biases and dropout.
#include "train/cuda/vector.cuh"
#include "train/engine/dropout.h"

namespace stoker::cuda {
namespace {

// out[i] = function(a[i], b[i]); b may be null (0). Any of them may be the same buffer.
template <typename Number, int V, typename Function>
__global__ void __launch_bounds__(kThreads)
    map_kernel(int64_t groups, const Number* a, const Number* b, Number* out, Function function) {
  for (int64_t i = first_item(); i < groups; i += item_step()) {
    float left[V], right[V] = {};
    load(a + i * V, left);
    if (b != nullptr) load(b + i * V, right);
#pragma unroll
    for (int v = 0; v < V; ++v) left[v] = function(left[v], right[v]);
    store(out + i * V, left);
  }
}

template <typename Function>
void map(cudaStream_t stream, int64_t count, Precision type, const void* a, const void* b,
         void* out, Function function) {
  with_width(type, count, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    launch(stream, map_kernel<Number, kWidth, Function>, blocks_for(count / kWidth), kThreads,
           count / kWidth, static_cast<const Number*>(a), static_cast<const Number*>(b),
           static_cast<Number*>(out), function);
  });
}

struct Activate {
  Activation kind;
  __device__ float operator()(float a, float b) const { return device::activate(kind, a + b); }
};
struct ActivateBackward {
  Activation kind;
  __device__ float operator()(float seen, float dy) const {
    return dy * device::activation_slope(kind, seen);
  }
};

template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    bias_kernel(int64_t groups, int channels, const float* bias, Activation kind, Number* x) {
  for (int64_t i = first_item(); i < groups; i += item_step()) {
    const int channel = static_cast<int>(i % (channels / V)) * V;
    float values[V];
    load(x + i * V, values);
#pragma unroll
    for (int v = 0; v < V; ++v) values[v] = device::activate(kind, values[v] + bias[channel + v]);
    store(x + i * V, values);
  }
}

// A thread handles V channels of one pixel.
template <typename Number, int V>
__global__ void __launch_bounds__(kThreads)
    dropout_kernel(uint32_t items, DropoutShape s, const int64_t* position, const Number* values,
                   Number* out) {
  const uint32_t groups = s.channels / V;
  const int64_t first_row = *position;
  for (uint32_t item = first_item(); item < items; item += item_step()) {
    const uint32_t pixel = item / groups, first = item % groups * V;
    const auto per_row = static_cast<uint32_t>(s.pixels);
    const uint64_t key = dropout_row_key(s.key, first_row + pixel / per_row);
    float taken[V];
    load(values + static_cast<int64_t>(item) * V, taken);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int64_t element = static_cast<int64_t>(first + v) * s.pixels + pixel % per_row;
      const float factor = dropout_factor(key, element, s.rate);
      taken[v] = factor == 0 ? 0.0f : factor * taken[v];
    }
    store(out + static_cast<int64_t>(item) * V, taken);
  }
}

__global__ void set_kernel(int64_t value, int64_t* target) { *target = value; }

// Stores a pixel of the first activation: what is seen of it, then zeros.
template <typename Number>
__device__ __forceinline__ void store_pixel(const ImageShape& s, uint32_t pixel,
                                            const float (&rgb)[3], Number* out) {
  Number* to = out + static_cast<int64_t>(pixel) * s.channels;
  if (s.channels == 8) {
    const float head[4] = {rgb[0], rgb[1], rgb[2], 0}, tail[4] = {};
    if constexpr (sizeof(Number) == 2) {
      const float all[8] = {rgb[0], rgb[1], rgb[2]};
      store(to, all);
    } else {
      store(to, head);
      store(to + 4, tail);
    }
  } else if (s.channels == 4) {
    const float all[4] = {rgb[0], rgb[1], rgb[2], 0};
    store(to, all);
  } else {
    for (int c = 0; c < s.channels; ++c) {
      const float one[1] = {c < 3 ? rgb[c] : 0.0f};
      store(to + c, one);
    }
  }
}

template <typename Number>
__global__ void __launch_bounds__(kThreads)
    view_kernel(uint32_t pixels, ImageShape s, const uint8_t* images, View view, Number* out) {
  const uint32_t per_row = static_cast<uint32_t>(s.height) * s.width;
  for (uint32_t pixel = first_item(); pixel < pixels; pixel += item_step()) {
    const uint32_t row = pixel / per_row, at = pixel % per_row;
    const int line = device::seen_at(static_cast<int>(at / s.width), s.height, view.shift_y, false);
    const int column =
        device::seen_at(static_cast<int>(at % s.width), s.width, view.shift_x, view.flip);
    const uint8_t* from =
        images +
        (static_cast<int64_t>(row) * per_row + static_cast<int64_t>(line) * s.width + column) * 3;
    float rgb[3];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      rgb[c] = c < s.seen ? device::normalised(from[c], s.mean[c], s.stddev[c]) : 0.0f;
    }
    store_pixel(s, pixel, rgb, out);
  }
}

}  // namespace

void load_view(cudaStream_t stream, const ImageShape& s, const uint8_t* images, const View& view,
               void* out) {
  const uint32_t pixels = counted(int64_t{s.rows} * s.height * s.width, "input");
  with_number(s.type, [&](auto number) {
    launch(stream, view_kernel<decltype(number)>, blocks_for(pixels), kThreads, pixels, s, images,
           view, static_cast<decltype(number)*>(out));
  });
}

void add_bias(cudaStream_t stream, int64_t pixels, int channels, Precision type, const float* bias,
              Activation kind, void* x) {
  with_width(type, channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const int64_t groups = pixels * channels / kWidth;
    launch(stream, bias_kernel<Number, kWidth>, blocks_for(groups), kThreads, groups, channels,
           bias, kind, static_cast<Number*>(x));
  });
}

void activate(cudaStream_t stream, Activation kind, int64_t count, Precision type, const void* x,
              void* y) {
  map(stream, count, type, x, nullptr, y, Activate{kind});
}

void activate_backward(cudaStream_t stream, Activation kind, int64_t count, Precision type,
                       const void* seen, const void* dy, void* dx) {
  map(stream, count, type, seen, dy, dx, ActivateBackward{kind});
}

void add(cudaStream_t stream, int64_t count, Precision type, Activation kind, const void* a,
         const void* b, void* out) {
  map(stream, count, type, a, b, out, Activate{kind});
}

void dropout(cudaStream_t stream, const DropoutShape& s, const int64_t* position,
             const void* values, void* out) {
  with_width(s.type, s.channels, [&](auto number, auto width) {
    using Number = decltype(number);
    constexpr int kWidth = decltype(width)::value;
    const uint32_t items = counted(s.rows * s.pixels * s.channels / kWidth, "dropout");
    launch(stream, dropout_kernel<Number, kWidth>, blocks_for(items), kThreads, items, s, position,
           static_cast<const Number*>(values), static_cast<Number*>(out));
  });
}

void set(cudaStream_t stream, int64_t value, int64_t* target) {
  launch(stream, set_kernel, 1, 1, value, target);
}

}  // namespace stoker::cuda
