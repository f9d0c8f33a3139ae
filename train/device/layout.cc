#include "train/device/layout.h"

#include <algorithm>

namespace stoker {
namespace {

int64_t aligned(int64_t count) {
  constexpr int64_t kStep = DeviceLayout::kTensorAlignment;
  return (count + kStep - 1) / kStep * kStep;
}

}  // namespace

DeviceLayout::DeviceLayout(const NetSpec& net, int input_channels)
    : net_(net),
      parameters_(parameter_table(net)),
      statistics_(statistics_table(net)),
      input_channels_(lower_for_device(net, input_channels)[0].shape.channels) {
  for (const TensorInfo& info : parameters_) {
    DeviceTensor tensor;
    tensor.offset = parameter_floats_;
    tensor.count = info.count;
    const bool of_input =
        info.kind == ParameterKind::conv_weight && net.nodes[info.node].input == 0;
    if (of_input) tensor.count = info.count / info.shape[1] * input_channels_;
    tensor.kind = info.kind;
    tensor.node = info.node;
    tensors_.push_back(tensor);
    parameter_floats_ = aligned(tensor.offset + tensor.count);
  }
  statistics_floats_ = total_count(statistics_);
  totals_ = aligned(parameter_floats_ + statistics_floats_);
  part_floats_ = aligned(totals_ + kDeviceTotals);
}

int DeviceLayout::tensor_of(int node, ParameterKind kind) const {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].node == node && tensors_[t].kind == kind) return static_cast<int>(t);
  }
  return -1;
}

int64_t DeviceLayout::statistics_of(int node) const {
  const auto info = std::ranges::find(statistics_, node, &TensorInfo::node);
  return info->offset;
}

std::vector<TensorChunk> DeviceLayout::chunks(bool convolutions_only) const {
  std::vector<TensorChunk> chunks;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const DeviceTensor& tensor = tensors_[t];
    if (convolutions_only && tensor.kind != ParameterKind::conv_weight) continue;
    for (int64_t at = 0; at < tensor.count; at += kChunkNumbers) {
      const int64_t count = std::min<int64_t>(kChunkNumbers, tensor.count - at);
      chunks.push_back({tensor.offset + at, static_cast<int>(count), static_cast<int>(t)});
    }
  }
  return chunks;
}

std::vector<StatisticChannel> DeviceLayout::statistic_channels(int micro_batch_rows) const {
  const std::vector<NodeShape> shapes = node_shapes(net_);
  std::vector<StatisticChannel> channels;
  for (size_t t = 0; t < statistics_.size(); t += 2) {
    const TensorInfo& mean = statistics_[t];
    const NodeShape& shape = shapes[mean.node];
    StatisticChannel channel;
    channel.momentum = net_.nodes[mean.node].momentum;
    channel.numbers = static_cast<float>(micro_batch_rows) * static_cast<float>(shape.height) *
                      static_cast<float>(shape.width);
    for (int64_t c = 0; c < mean.count; ++c) {
      channel.mean = static_cast<int>(mean.offset + c);
      channel.variance = static_cast<int>(statistics_[t + 1].offset + c);
      channels.push_back(channel);
    }
  }
  return channels;
}

template <typename Visit>
void DeviceLayout::for_each_number(Visit visit) const {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const TensorInfo& info = parameters_[t];
    const DeviceTensor& tensor = tensors_[t];
    if (info.kind != ParameterKind::conv_weight) {
      for (int64_t i = 0; i < info.count; ++i) visit(info.offset + i, tensor.offset + i);
      continue;
    }
    const int64_t outs = info.shape[0], ins = info.shape[1], taps = info.shape[2] * info.shape[3];
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

void DeviceLayout::to_device(std::span<const float> values, std::span<float> flat) const {
  std::ranges::fill(flat, 0.0f);
  for_each_number([&](int64_t from, int64_t to) { flat[to] = values[from]; });
}

void DeviceLayout::from_device(std::span<const float> flat, std::span<float> values) const {
  for_each_number([&](int64_t to, int64_t from) { values[to] = flat[from]; });
}

}  // namespace stoker
