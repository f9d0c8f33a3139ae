// Inputs and outputs of a folded convolution (folded_conv.h).
#include "train/cuda/vector.cuh"

namespace stoker::cuda {
namespace {

// A thread writes one folded pixel, which is read from a square of up to four pixels.
template <typename Number, int kRead, int kChannels>
__global__ void __launch_bounds__(kThreads)
    fold_pixels_kernel(uint32_t pixels, FoldedShape s, const Number* x, Number* folded) {
  const uint32_t width = s.folded.in_width, height = s.folded.in_height;
  for (uint32_t pixel = first_item(); pixel < pixels; pixel += item_step()) {
    const uint32_t row = pixel / (width * height);
    const int line = 2 * static_cast<int>(pixel / width % height) - s.shift.height;
    const int column = 2 * static_cast<int>(pixel % width) - s.shift.width;
    Packed<Number, kChannels> square = {};
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int y = line + part / 2, at = column + part % 2;
      if (y < 0 || at < 0 || y >= s.plain.in_height || at >= s.plain.in_width) continue;
      const int64_t from =
          ((static_cast<int64_t>(row) * s.plain.in_height + y) * s.plain.in_width + at) *
          s.plain.in_channels;
#pragma unroll
      for (int c = 0; c < kRead; ++c) square.value[part * kRead + c] = x[from + c];
    }
    Number* to = folded + static_cast<int64_t>(pixel) * kChannels;
#pragma unroll
    for (int first = 0; first < kChannels; first += kWide<Number>) {
      Packed<Number, kWide<Number>> piece;
#pragma unroll
      for (int i = 0; i < kWide<Number>; ++i) piece.value[i] = square.value[first + i];
      *reinterpret_cast<Packed<Number, kWide<Number>>*>(to + first) = piece;
    }
  }
}

// The place of a weight in (output channel, row, column, input channel), the last one fastest.
struct Place {
  int out, row, column, channel;
};
__device__ __forceinline__ Place place_of(const ConvShape& s, uint32_t index) {
  const uint32_t tap = index / s.in_channels, row = tap / s.kernel.width;
  return {static_cast<int>(row / s.kernel.height), static_cast<int>(row % s.kernel.height),
          static_cast<int>(tap % s.kernel.width), static_cast<int>(index % s.in_channels)};
}
__device__ __forceinline__ int index_of(const ConvShape& s, const Place& at) {
  const int tap = (at.out * s.kernel.height + at.row) * s.kernel.width + at.column;
  return tap * s.in_channels + at.channel;
}

// A thread writes one folded weight: that of a tap and channel of the plain convolution, or 0.
template <typename Number>
__global__ void __launch_bounds__(kThreads)
    fold_weights_kernel(uint32_t weights, FoldedShape s, const Number* from, Number* folded) {
  const Size kernel = s.plain.kernel;
  for (uint32_t i = first_item(); i < weights; i += item_step()) {
    const Place to = place_of(s.folded, i);
    const int part = to.channel / s.plain.read_channels;
    const Place at = {to.out, 2 * to.row + part / 2, 2 * to.column + part % 2,
                      to.channel % s.plain.read_channels};
    const bool there = part < 4 && at.row < kernel.height && at.column < kernel.width;
    folded[i] = there ? from[index_of(s.plain, at)] : Number{};
  }
}

// A thread writes the gradient of one weight of the plain convolution; channels that are not read
// have none.
template <typename Number>
__global__ void __launch_bounds__(kThreads)
    unfold_weights_kernel(uint32_t weights, FoldedShape s, const Number* folded, Number* to) {
  const int read = s.plain.read_channels;
  for (uint32_t i = first_item(); i < weights; i += item_step()) {
    const Place at = place_of(s.plain, i);
    const Place from = {at.out, at.row / 2, at.column / 2,
                        (at.row % 2 * 2 + at.column % 2) * read + at.channel};
    to[i] = at.channel < read ? folded[index_of(s.folded, from)] : Number{};
  }
}

uint32_t weights_of(const ConvShape& s) {
  return counted(int64_t{s.out_channels} * s.kernel.height * s.kernel.width * s.in_channels,
                 "a convolution's weights");
}

// Calls visit(integral_constant<int, read channels>, integral_constant<int, folded channels>).
template <typename Visit>
void with_read_channels(const FoldedShape& s, Visit visit) {
  if (s.plain.read_channels == 1) {
    visit(std::integral_constant<int, 1>{}, std::integral_constant<int, 8>{});
  } else {
    visit(std::integral_constant<int, 3>{}, std::integral_constant<int, 16>{});
  }
}

}  // namespace

void fold_pixels(cudaStream_t stream, const FoldedShape& s, const void* x, void* folded) {
  const uint32_t pixels =
      counted(int64_t{s.folded.rows} * s.folded.in_height * s.folded.in_width, "folded pixels");
  with_number(s.plain.type, [&](auto number) {
    using Number = decltype(number);
    with_read_channels(s, [&](auto read, auto channels) {
      constexpr int kRead = decltype(read)::value, kChannels = decltype(channels)::value;
      launch(stream, fold_pixels_kernel<Number, kRead, kChannels>, blocks_for(pixels), kThreads,
             pixels, s, static_cast<const Number*>(x), static_cast<Number*>(folded));
    });
  });
}

void fold_weights(cudaStream_t stream, const FoldedShape& s, const void* weights, void* folded) {
  const uint32_t count = weights_of(s.folded);
  with_number(s.plain.type, [&](auto number) {
    using Number = decltype(number);
    launch(stream, fold_weights_kernel<Number>, blocks_for(count), kThreads, count, s,
           static_cast<const Number*>(weights), static_cast<Number*>(folded));
  });
}

void unfold_weights(cudaStream_t stream, const FoldedShape& s, const void* folded, void* weights) {
  const uint32_t count = weights_of(s.plain);
  with_number(s.plain.type, [&](auto number) {
    using Number = decltype(number);
    launch(stream, unfold_weights_kernel<Number>, blocks_for(count), kThreads, count, s,
           static_cast<const Number*>(folded), static_cast<Number*>(weights));
  });
}

}  // namespace stoker::cuda
