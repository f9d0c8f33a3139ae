#include "train/graph/lowering.h"

#include <algorithm>

namespace stoker {
namespace {

Activation activation_of(OpKind kind) {
  switch (kind) {
    case OpKind::relu:
      return Activation::relu;
    case OpKind::gelu:
      return Activation::gelu;
    case OpKind::tanh:
      return Activation::tanh;
    case OpKind::sigmoid:
      return Activation::sigmoid;
    default:
      return Activation::none;
  }
}

bool takes_activation(const FusedNode& producer, Activation activation, const FusionRules& rules) {
  if (producer.activation != Activation::none) return false;
  if (producer.kind == OpKind::conv) {
    return rules.activation_in_conv && activation != Activation::gelu;
  }
  if (producer.kind == OpKind::batch_norm) {
    return activation == Activation::relu || (activation == Activation::gelu && rules.gelu_in_norm);
  }
  return producer.kind == OpKind::add && activation == Activation::relu;
}

void count_readers(std::vector<FusedNode>& nodes) {
  for (FusedNode& node : nodes) node.readers = 0;
  for (size_t i = 1; i < nodes.size(); ++i) {
    for (const int input : inputs_of(nodes[i])) ++nodes[input].readers;
  }
}

// Marks the nodes that the logits depend on.
std::vector<bool> needed_for_logits(const NetSpec& net) {
  std::vector<bool> needed(net.nodes.size(), false);
  needed.back() = true;
  for (size_t i = net.nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const int input : inputs_of(net.nodes[i])) needed[input] = true;
  }
  return needed;
}

bool is_left_out(const NetSpec& net, size_t index, const std::vector<NodeShape>& shapes,
                 bool training) {
  const NetNode& node = net.nodes[index];
  if (node.kind == OpKind::dropout) return !training || node.rate == 0;
  const auto unchanged = [&] {
    const NodeShape& in = shapes[node.input];
    return in.width == shapes[index].width && in.height == shapes[index].height;
  };
  return node.kind == OpKind::adaptive_avg_pool && unchanged();
}

std::vector<FusedNode> with_activations(const NetSpec& net, const FusionRules& rules,
                                        bool training) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  const std::vector<int> readers = readers_of_nodes(net);
  std::vector<FusedNode> nodes;
  const std::vector<bool> needed = needed_for_logits(net);
  std::vector<int> index_of(net.nodes.size(), -1);
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NetNode& node = net.nodes[i];
    if (!training && !needed[i]) continue;
    if (is_left_out(net, i, shapes, training)) {
      index_of[i] = index_of[node.input];
      continue;
    }
    const Activation activation = activation_of(node.kind);
    if (activation != Activation::none && readers[node.input] == 1) {
      FusedNode& producer = nodes[index_of[node.input]];
      // A node that was left out may hide further readers.
      const bool direct = producer.node == node.input;
      if (direct && takes_activation(producer, activation, rules)) {
        producer.activation = activation;
        index_of[i] = index_of[node.input];
        continue;
      }
    }
    FusedNode made;
    made.kind = node.kind;
    made.node = static_cast<int>(i);
    made.input = node.input >= 0 ? index_of[node.input] : -1;
    for (const int input : node.more_inputs) made.more_inputs.push_back(index_of[input]);
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
  for (const int candidate : inputs_of(add)) {
    const FusedNode& norm = nodes[candidate];
    const bool plain = norm.kind == OpKind::batch_norm && norm.more_inputs.empty() &&
                       norm.activation == Activation::none && norm.readers == 1;
    if (plain && add.input != add.more_inputs[0]) return candidate;
  }
  return -1;
}

void pass_relu_gradients_after_pools(std::vector<FusedNode>& nodes) {
  for (FusedNode& pool : nodes) {
    if (pool.kind != OpKind::max_pool) continue;
    FusedNode& producer = nodes[pool.input];
    const bool fused = producer.kind == OpKind::conv && producer.activation == Activation::relu;
    if (!fused || producer.readers != 1) continue;
    pool.activation = Activation::relu;
    producer.passed_by_pool = true;
  }
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
    if (norm != node.input) node.more_inputs = {node.input};
    node.input = nodes[norm].input;
  }
  std::vector<int> moved(nodes.size(), -1);
  std::vector<FusedNode> kept;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (gone[i]) continue;
    moved[i] = static_cast<int>(kept.size());
    FusedNode node = nodes[i];
    if (node.input >= 0) node.input = moved[node.input];
    for (int& input : node.more_inputs) input = moved[input];
    kept.push_back(node);
  }
  return kept;
}

}  // namespace

std::vector<int> inputs_of(const FusedNode& node) {
  std::vector<int> inputs;
  if (node.kind != OpKind::input) inputs.push_back(node.input);
  inputs.insert(inputs.end(), node.more_inputs.begin(), node.more_inputs.end());
  return inputs;
}

std::vector<FusedNode> lower(const NetSpec& net, const FusionRules& rules, bool training) {
  std::vector<FusedNode> nodes = with_activations(net, rules, training);
  if (rules.residual_in_norm) nodes = without_additions(std::move(nodes));
  count_readers(nodes);
  if (training && rules.relu_back_after_pool) pass_relu_gradients_after_pools(nodes);
  const bool padded = std::ranges::all_of(nodes, [&](const FusedNode& node) {
    const std::vector<int> inputs = inputs_of(node);
    const bool reads_input = std::ranges::find(inputs, 0) != inputs.end();
    return !reads_input || (node.kind == OpKind::conv && !net.nodes[node.node].flat);
  });
  if (padded) {
    nodes[0].shape.channels = std::max(net.input_channels, rules.input_channels);
  }
  return nodes;
}

}  // namespace stoker
