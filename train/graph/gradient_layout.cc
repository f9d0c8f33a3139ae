#include "train/graph/gradient_layout.h"

#include <algorithm>

#include "train/engine/engine.h"
#include "train/graph/execution_plan.h"

namespace stoker {
namespace {

int64_t tensor_aligned(int64_t count) { return round_up(count, GradientLayout::kTensorAlignment); }

}  // namespace

StepMetrics step_metrics_from(const float* metrics, bool finite) {
  const auto sum = [&](StepMetric metric) -> double { return metrics[static_cast<int>(metric)]; };
  return {sum(StepMetric::loss), sum(StepMetric::weight), sum(StepMetric::top1),
          sum(StepMetric::top5), finite};
}

GradientLayout::GradientLayout(const NetSpec& net, const FusionRules& rules)
    : net_(net), statistics_(statistics_table(net)) {
  const int input_channels = lower(net, rules)[0].shape.channels;
  for (const TensorInfo& info : parameter_table(net)) {
    LayoutTensor tensor{moments_, info.count, info.kind, info.node};
    const bool of_input =
        info.kind == ParameterKind::conv_weight && net.nodes[info.node].input == 0;
    if (of_input) {
      tensor.count = info.count / conv_extents(net, info).in * input_channels;
    }
    tensors_.push_back(tensor);
    moments_ = tensor_aligned(tensor.offset + tensor.count);
  }
  statistics_numbers_ = total_count(statistics_);
  metrics_ = tensor_aligned(moments_ + statistics_numbers_);
  numbers_ = tensor_aligned(metrics_ + kStepMetrics);
}

std::vector<LayoutGap> GradientLayout::gaps() const {
  std::vector<LayoutGap> gaps;
  for (const LayoutTensor& tensor : tensors_) {
    const int64_t end = tensor.offset + tensor.count;
    if (end < tensor_aligned(end)) gaps.push_back({end, tensor_aligned(end) - end});
  }
  return gaps;
}

int GradientLayout::tensor_of(int node, ParameterKind kind) const {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].node == node && tensors_[t].kind == kind) return static_cast<int>(t);
  }
  return -1;
}

int64_t GradientLayout::offset_of(int node, ParameterKind kind) const {
  const int tensor = tensor_of(node, kind);
  return tensor < 0 ? -1 : tensors_[tensor].offset;
}

int64_t GradientLayout::statistics_of(int node) const {
  return std::ranges::find(statistics_, node, &TensorInfo::node)->offset;
}

std::vector<TensorChunk> GradientLayout::chunks(int64_t most, bool convolutions_only) const {
  std::vector<TensorChunk> chunks;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const LayoutTensor& tensor = tensors_[t];
    if (convolutions_only && tensor.kind != ParameterKind::conv_weight) continue;
    for (int64_t at = 0; at < tensor.count; at += most) {
      const int64_t count = std::min(most, tensor.count - at);
      chunks.push_back({tensor.offset + at, static_cast<int>(count), static_cast<int>(t)});
    }
  }
  return chunks;
}

std::vector<StatisticChannel> GradientLayout::statistic_channels(int rows) const {
  const std::vector<NodeShape> shapes = node_shapes(net_);
  std::vector<StatisticChannel> channels;
  for (size_t t = 0; t < statistics_.size(); t += 2) {
    const TensorInfo& mean = statistics_[t];
    const NodeShape& shape = shapes[mean.node];
    StatisticChannel channel;
    channel.momentum = net_.nodes[mean.node].momentum;
    channel.numbers = static_cast<float>(rows) * static_cast<float>(shape.height) *
                      static_cast<float>(shape.width);
    for (int64_t c = 0; c < mean.count; ++c) {
      channel.mean = static_cast<int>(mean.offset + c);
      channel.variance = static_cast<int>(statistics_[t + 1].offset + c);
      channels.push_back(channel);
    }
  }
  return channels;
}

}  // namespace stoker
