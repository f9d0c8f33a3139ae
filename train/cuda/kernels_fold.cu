// What a folded convolution reads and writes (folded_conv.h).
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

// Where a folded weight comes from, and where the weight of a tap goes to.
template <typename Number>
__global__ void __launch_bounds__(kThreads)
    fold_weights_kernel(uint32_t weights, FoldedShape s, const Number* from, Number* folded) {
  const ConvShape &plain = s.plain, &to = s.folded;
  for (uint32_t i = first_item(); i < weights; i += item_step()) {
    const int channel = static_cast<int>(i % to.in_channels);
    const uint32_t tap = i / to.in_channels;
    const int part = channel / plain.read_channels;
    const int row = 2 * static_cast<int>(tap / to.kernel.width % to.kernel.height) + part / 2;
    const int column = 2 * static_cast<int>(tap % to.kernel.width) + part % 2;
    const uint32_t out = tap / (to.kernel.width * to.kernel.height);
    Number value = {};
    if (part < 4 && row < plain.kernel.height && column < plain.kernel.width) {
      value = from[((out * plain.kernel.height + row) * plain.kernel.width + column) *
                       plain.in_channels +
                   channel % plain.read_channels];
    }
    folded[i] = value;
  }
}

template <typename Number>
__global__ void __launch_bounds__(kThreads)
    unfold_weights_kernel(uint32_t weights, FoldedShape s, const Number* folded, Number* to) {
  const ConvShape &plain = s.plain, &from = s.folded;
  for (uint32_t i = first_item(); i < weights; i += item_step()) {
    const int channel = static_cast<int>(i % plain.in_channels);
    const uint32_t tap = i / plain.in_channels;
    const int row = static_cast<int>(tap / plain.kernel.width % plain.kernel.height);
    const int column = static_cast<int>(tap % plain.kernel.width);
    const uint32_t out = tap / (plain.kernel.width * plain.kernel.height);
    Number value = {};
    if (channel < plain.read_channels) {
      const int part = row % 2 * 2 + column % 2;
      value = folded[((out * from.kernel.height + row / 2) * from.kernel.width + column / 2) *
                         from.in_channels +
                     part * plain.read_channels + channel];
    }
    to[i] = value;
  }
}

uint32_t weights_of(const ConvShape& s) {
  return counted(int64_t{s.out_channels} * s.kernel.height * s.kernel.width * s.in_channels,
                 "a convolution's weights");
}

// Calls visit(integral_constant<int, read channels>, integral_constant<int, folded channels>).
template <typename Visit>
void with_read_channels(const FoldedShape& s, Visit visit) {
  switch (s.plain.read_channels) {
    case 1:
      return visit(std::integral_constant<int, 1>{}, std::integral_constant<int, 8>{});
    case 2:
      return visit(std::integral_constant<int, 2>{}, std::integral_constant<int, 8>{});
    case 3:
      return visit(std::integral_constant<int, 3>{}, std::integral_constant<int, 16>{});
    default:
      return visit(std::integral_constant<int, 4>{}, std::integral_constant<int, 16>{});
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
