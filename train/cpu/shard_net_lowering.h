// A NetSpec as the CPU engine runs it: a ReLU that alone reads a batch norm or an addition becomes
// part of it. Pure; values.
#pragma once

#include <vector>

#include "train/model/net_spec.h"

namespace stoker {

struct LoweredOp {
  OpKind kind = OpKind::input;
  int node = 0;     // whose parameters and attributes
  int input = -1;   // indices of ops
  int input2 = -1;  // add only
  bool relu = false;
  int readers = 0;  // ops that read this one's output
  NodeShape shape;  // of the output, one row
};

// Op 0 is the input, the last is the linear layer. Throws as node_shapes() does.
std::vector<LoweredOp> lower(const NetSpec& net);

}  // namespace stoker
