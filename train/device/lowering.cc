#include "train/device/lowering.h"

#include <algorithm>

namespace stoker {
namespace {

Activation activation_of(OpKind kind) {
  if (kind == OpKind::relu) return Activation::relu;
  return kind == OpKind::gelu ? Activation::gelu : Activation::none;
}

bool takes_activation(const DeviceNode& producer, Activation activation) {
  if (producer.activation != Activation::none) return false;
  if (producer.kind == OpKind::batch_norm) return true;
  return producer.kind == OpKind::add && activation == Activation::relu;
}

void count_readers(std::vector<DeviceNode>& nodes) {
  for (DeviceNode& node : nodes) node.readers = 0;
  for (size_t i = 1; i < nodes.size(); ++i) {
    ++nodes[nodes[i].input].readers;
    if (nodes[i].input2 >= 0) ++nodes[nodes[i].input2].readers;
  }
}

std::vector<DeviceNode> with_activations(const NetSpec& net) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  const std::vector<int> readers = readers_of_nodes(net);
  std::vector<DeviceNode> nodes;
  std::vector<int> index_of(net.nodes.size(), -1);
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NetNode& node = net.nodes[i];
    const Activation activation = activation_of(node.kind);
    if (activation != Activation::none && readers[node.input] == 1) {
      DeviceNode& producer = nodes[index_of[node.input]];
      if (takes_activation(producer, activation)) {
        producer.activation = activation;
        index_of[i] = index_of[node.input];
        continue;
      }
    }
    DeviceNode made;
    made.kind = node.kind;
    made.node = static_cast<int>(i);
    made.input = node.input >= 0 ? index_of[node.input] : -1;
    made.input2 = node.kind == OpKind::add ? index_of[node.input2] : -1;
    made.activation = activation;
    made.shape = shapes[i];
    index_of[i] = static_cast<int>(nodes.size());
    nodes.push_back(made);
  }
  count_readers(nodes);
  return nodes;
}

// The batch norm that the addition can be part of, or -1: it is then computed where the addition
// was, when both summands are there.
int norm_of_addition(const std::vector<DeviceNode>& nodes, const DeviceNode& add) {
  for (const int candidate : {add.input, add.input2}) {
    const DeviceNode& norm = nodes[candidate];
    const bool plain = norm.kind == OpKind::batch_norm && norm.input2 < 0 &&
                       norm.activation == Activation::none && norm.readers == 1;
    if (plain && add.input != add.input2) return candidate;
  }
  return -1;
}

std::vector<DeviceNode> without_additions(std::vector<DeviceNode> nodes) {
  std::vector<bool> gone(nodes.size(), false);
  for (DeviceNode& node : nodes) {
    if (node.kind != OpKind::add) continue;
    const int norm = norm_of_addition(nodes, node);
    if (norm < 0) continue;
    gone[norm] = true;
    node.kind = OpKind::batch_norm;
    node.node = nodes[norm].node;
    node.input2 = norm == node.input ? node.input2 : node.input;
    node.input = nodes[norm].input;
  }
  std::vector<int> moved(nodes.size(), -1);
  std::vector<DeviceNode> kept;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (gone[i]) continue;
    moved[i] = static_cast<int>(kept.size());
    DeviceNode node = nodes[i];
    if (node.input >= 0) node.input = moved[node.input];
    if (node.input2 >= 0) node.input2 = moved[node.input2];
    kept.push_back(node);
  }
  return kept;
}

}  // namespace

std::vector<DeviceNode> lower_for_device(const NetSpec& net, int input_channels) {
  std::vector<DeviceNode> nodes = without_additions(with_activations(net));
  count_readers(nodes);
  const bool padded = std::ranges::all_of(nodes, [](const DeviceNode& node) {
    return (node.input != 0 && node.input2 != 0) || node.kind == OpKind::conv;
  });
  if (padded) nodes[0].shape.channels = std::max(3, input_channels);
  return nodes;
}

std::vector<ConvShape> conv_shapes(const NetSpec& net, int input_channels, int rows,
                                   Precision precision) {
  const std::vector<DeviceNode> nodes = lower_for_device(net, input_channels);
  std::vector<ConvShape> shapes;
  for (const DeviceNode& node : nodes) {
    if (node.kind != OpKind::conv) continue;
    const NodeShape& in = nodes[node.input].shape;
    const NetNode& spec = net.nodes[node.node];
    ConvShape shape;
    shape.rows = rows;
    shape.in_channels = in.channels;
    shape.in_height = in.height;
    shape.in_width = in.width;
    shape.out_channels = node.shape.channels;
    shape.out_height = node.shape.height;
    shape.out_width = node.shape.width;
    shape.kernel = spec.kernel;
    shape.stride = spec.stride;
    shape.padding = spec.padding;
    shape.type = precision;
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace stoker
