// Lowers a NetSpec to the list of fused nodes that an engine runs. A ReLU becomes part of the batch
// norm or the addition whose only reader it is; FusionRules say what else is fused. An adaptive
// pool that changes nothing is left out. Pure; values.
#pragma once

#include <cstdint>
#include <vector>

#include "train/model/net_spec.h"

namespace stoker {

enum class Activation : uint8_t { none, relu, gelu, tanh, sigmoid };

// Returns whether an activation's slope is computed from its output. GELU's needs its input.
constexpr bool reads_output(Activation activation) {
  return activation != Activation::none && activation != Activation::gelu;
}

// The fusions that an engine's kernels can do. Every engine's batch norm and addition can include a
// ReLU.
struct FusionRules {
  bool gelu_in_norm = false;      // a batch norm includes a GELU that is its only reader
  bool residual_in_norm = false;  // a batch norm includes an addition that is its only reader
  // A convolution includes a ReLU, tanh or sigmoid that is its only reader.
  bool activation_in_conv = false;
  // The gradient of a ReLU passes before that of the max pool that is its only reader, where there
  // are fewer values: a window's largest value has passed the ReLU if the pool's output is
  // positive, and no other value has a gradient. The backward pass then does not need the ReLU's
  // output.
  bool relu_back_after_pool = false;
  // Where the backward pass needs a concatenation and a part of it, it copies the part out of the
  // concatenation, instead of keeping both. In a DenseNet each concatenation is a part of the next.
  bool recalls_parts = false;
  int input_channels = 1;  // the input is padded to these if only convolutions read it
};

struct FusedNode {
  OpKind kind = OpKind::input;
  int node = 0;                  // of the NetSpec: has the parameters and attributes
  int input = -1;                // indices of fused nodes
  std::vector<int> more_inputs;  // add, concat; batch_norm: the residual, if any
  // Also of the nodes of activations. Of a max pool: the ReLU of its input, whose gradient it
  // passes.
  Activation activation = Activation::none;
  bool passed_by_pool = false;  // the gradient of the activation: the reader is such a max pool
  int readers = 0;              // how often its output is read
  NodeShape shape;              // of the output, one row
};

std::vector<int> inputs_of(const FusedNode& node);  // in order

// Node 0 is the input, the last node is the linear layer. For evaluation (not `training`) dropout
// and what only auxiliary heads read are left out. Throws as node_shapes() does.
std::vector<FusedNode> lower(const NetSpec& net, const FusionRules& rules, bool training = true);

}  // namespace stoker
