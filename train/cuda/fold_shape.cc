#include "train/cuda/fold_shape.h"

namespace stoker {
namespace {

constexpr int kMinKernel = 5;     // 3x3 taps of 8 channels are hardly more than 2x2 of 16
constexpr int kFoldMultiple = 8;  // of channels, for matrix units

struct FoldedAxis {
  int size = 0, kernel = 0, padding = 0, shift = 0;
};

// Returns nothing if a convolution of stride 1 with the same padding on both sides does not see all
// that the plain one sees.
std::optional<FoldedAxis> fold_axis(int size, int out, int kernel, int padding) {
  if (kernel % 2 == 0 || kernel < kMinKernel) return std::nullopt;
  FoldedAxis axis;
  axis.shift = padding % 2;
  axis.kernel = (kernel + 1) / 2;
  axis.padding = (padding - axis.shift) / 2;
  axis.size = out + axis.kernel - 1 - 2 * axis.padding;
  const int used = (size - 1 + axis.shift) / 2 + 1;
  if (axis.size < used) return std::nullopt;
  return axis;
}

}  // namespace

std::optional<FoldedShape> fold(const ConvShape& s) {
  if (s.stride != 2 || (s.read_channels != 1 && s.read_channels != 3)) return std::nullopt;
  const auto rows = fold_axis(s.in_height, s.out_height, s.kernel.height, s.padding.height);
  const auto columns = fold_axis(s.in_width, s.out_width, s.kernel.width, s.padding.width);
  if (!rows || !columns) return std::nullopt;
  FoldedShape shape{s, s, {columns->shift, rows->shift}};
  ConvShape& folded = shape.folded;
  folded.in_channels = (4 * s.read_channels + kFoldMultiple - 1) / kFoldMultiple * kFoldMultiple;
  folded.read_channels = 0;
  folded.in_height = rows->size;
  folded.in_width = columns->size;
  folded.kernel = {columns->kernel, rows->kernel};
  folded.padding = {columns->padding, rows->padding};
  folded.stride = 1;
  return shape;
}

}  // namespace stoker
