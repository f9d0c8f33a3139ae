#include "train/device/rules.h"

namespace stoker {
namespace {

const char* gap_of(const NetSpec& net, size_t index) {
  const NetNode& node = net.nodes[index];
  switch (node.kind) {
    case OpKind::concat:
      return "a concatenation";
    case OpKind::dropout:
      return node.rate > 0 ? "dropout" : nullptr;
    case OpKind::tanh:
      return "tanh";
    case OpKind::sigmoid:
      return "a sigmoid";
    case OpKind::avg_pool:
      return "an average pool";
    case OpKind::adaptive_avg_pool:
      return node.output == Size{1, 1} ? nullptr : "an adaptive average pool";
    case OpKind::linear:
      return index + 1 < net.nodes.size() ? "an auxiliary head" : nullptr;
    case OpKind::max_pool:
      return node.ceil ? "a pool with ceil_mode" : nullptr;
    default:
      break;
  }
  const bool square =
      node.kernel.width == node.kernel.height && node.padding.width == node.padding.height;
  return square ? nullptr : "a rectangular kernel";
}

}  // namespace

std::string device_gap(const NetSpec& net) {
  if (net.loss != LossKind::softmax) return "a binary loss";
  if (net.input_channels != 3) return "gray input";
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    if (const char* gap = gap_of(net, i)) return gap;
  }
  return "";
}

}  // namespace stoker
