#include "train/graph/lowering.h"

#include <algorithm>

namespace stoker {
namespace {

Activation activation_of(OpKind kind) {
  if (kind == OpKind::relu) return Activation::relu;
  return kind == OpKind::gelu ? Activation::gelu : Activation::none;
}

bool takes_activation(const FusedNode& producer, Activation activation, const FusionRules& rules) {
  if (producer.activation != Activation::none) return false;
  if (activation == Activation::gelu && !rules.gelu_in_norm) return false;
  if (producer.kind == OpKind::batch_norm) return true;
  return producer.kind == OpKind::add && activation == Activation::relu;
}

void count_readers(std::vector<FusedNode>& nodes) {
  for (FusedNode& node : nodes) node.readers = 0;
  for (size_t i = 1; i < nodes.size(); ++i) {
    ++nodes[nodes[i].input].readers;
    if (nodes[i].input2 >= 0) ++nodes[nodes[i].input2].readers;
  }
}

std::vector<FusedNode> with_activations(const NetSpec& net, const FusionRules& rules) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  const std::vector<int> readers = readers_of_nodes(net);
  std::vector<FusedNode> nodes;
  std::vector<int> index_of(net.nodes.size(), -1);
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NetNode& node = net.nodes[i];
    const Activation activation = activation_of(node.kind);
    if (activation != Activation::none && readers[node.input] == 1) {
      FusedNode& producer = nodes[index_of[node.input]];
      if (takes_activation(producer, activation, rules)) {
        producer.activation = activation;
        index_of[i] = index_of[node.input];
        continue;
      }
    }
    FusedNode made;
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

// Returns the batch norm that can include the addition, or -1. That batch norm then takes the place
// of the addition, because it needs both summands.
int norm_of_addition(const std::vector<FusedNode>& nodes, const FusedNode& add) {
  for (const int candidate : {add.input, add.input2}) {
    const FusedNode& norm = nodes[candidate];
    const bool plain = norm.kind == OpKind::batch_norm && norm.input2 < 0 &&
                       norm.activation == Activation::none && norm.readers == 1;
    if (plain && add.input != add.input2) return candidate;
  }
  return -1;
}

std::vector<FusedNode> without_additions(std::vector<FusedNode> nodes) {
  std::vector<bool> gone(nodes.size(), false);
  for (FusedNode& node : nodes) {
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
  std::vector<FusedNode> kept;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (gone[i]) continue;
    moved[i] = static_cast<int>(kept.size());
    FusedNode node = nodes[i];
    if (node.input >= 0) node.input = moved[node.input];
    if (node.input2 >= 0) node.input2 = moved[node.input2];
    kept.push_back(node);
  }
  return kept;
}

}  // namespace

std::vector<FusedNode> lower(const NetSpec& net, const FusionRules& rules) {
  std::vector<FusedNode> nodes = with_activations(net, rules);
  if (rules.residual_in_norm) nodes = without_additions(std::move(nodes));
  count_readers(nodes);
  const bool padded = std::ranges::all_of(nodes, [](const FusedNode& node) {
    return (node.input != 0 && node.input2 != 0) || node.kind == OpKind::conv;
  });
  if (padded) nodes[0].shape.channels = std::max(3, rules.input_channels);
  return nodes;
}

}  // namespace stoker
