// A NetSpec as an engine runs it: a list of fused nodes. A ReLU becomes part of the batch norm or
// the addition that it alone reads; what else fuses is the engine's to say. Pure; values.
#pragma once

#include <cstdint>
#include <vector>

#include "train/model/net_spec.h"

namespace stoker {

enum class Activation : uint8_t { none, relu, gelu };

// What an engine's kernels do in one step. Every engine's batch norm and addition take a ReLU.
struct FusionRules {
  bool gelu_in_norm = false;      // a batch norm takes the GELU that alone reads it
  bool residual_in_norm = false;  // a batch norm takes the addition that alone reads it
  int input_channels = 3;         // the input is padded to these where convolutions alone read it
};

struct FusedNode {
  OpKind kind = OpKind::input;
  int node = 0;                              // of the NetSpec: whose parameters and attributes
  int input = -1;                            // indices of fused nodes
  int input2 = -1;                           // add; batch_norm: the residual, or -1
  Activation activation = Activation::none;  // also of relu and gelu nodes
  int readers = 0;                           // uses of its output
  NodeShape shape;                           // of the output, one row
};

// Node 0 is the input, the last is the linear layer. Throws as node_shapes() does.
std::vector<FusedNode> lower(const NetSpec& net, const FusionRules& rules);

}  // namespace stoker
