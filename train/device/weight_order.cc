#include "train/device/weight_order.h"

#include <algorithm>

namespace stoker {
namespace {

template <typename Visit>  // visit(index in PyTorch's order, index in the flat buffer)
void for_each_number(const GradientLayout& layout, std::span<const TensorInfo> table, Visit visit) {
  for (size_t t = 0; t < table.size(); ++t) {
    const TensorInfo& info = table[t];
    const LayoutTensor& tensor = layout.tensors()[t];
    if (info.kind != ParameterKind::conv_weight) {
      for (int64_t i = 0; i < info.count; ++i) visit(info.offset + i, tensor.offset + i);
      continue;
    }
    const ConvExtents extents = conv_extents(layout.net(), info);
    const int64_t outs = extents.out, ins = extents.in, taps = extents.height * extents.width;
    const int64_t padded_ins = tensor.count / outs / taps;
    for (int64_t o = 0; o < outs; ++o) {
      for (int64_t i = 0; i < ins; ++i) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          visit(info.offset + (o * ins + i) * taps + tap,
                tensor.offset + (o * taps + tap) * padded_ins + i);
        }
      }
    }
  }
}

}  // namespace

void to_device_order(const GradientLayout& layout, std::span<const TensorInfo> table,
                     std::span<const float> values, std::span<float> flat) {
  std::ranges::fill(flat, 0.0f);
  for_each_number(layout, table, [&](int64_t from, int64_t to) { flat[to] = values[from]; });
}

void from_device_order(const GradientLayout& layout, std::span<const TensorInfo> table,
                       std::span<const float> flat, std::span<float> values) {
  for_each_number(layout, table, [&](int64_t to, int64_t from) { values[to] = flat[from]; });
}

}  // namespace stoker
