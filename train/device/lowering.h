// A NetSpec as the device engine runs it: activations become part of the batch norm (or ReLU of the
// addition) that they alone read, and an addition part of the batch norm that it alone reads. Pure;
// values.
#pragma once

#include <vector>

#include "train/device/types.h"
#include "train/model/net_spec.h"

namespace stoker {

struct DeviceNode {
  OpKind kind = OpKind::input;
  int node = 0;     // whose parameters and attributes
  int input = -1;   // indices of device nodes
  int input2 = -1;  // add; batch_norm: the residual, or -1
  Activation activation = Activation::none;
  int readers = 0;  // uses of its output
  NodeShape shape;  // of the output, one row
};

// Node 0 is the input, the last is the linear layer. `input_channels` > 3 pads the input where
// convolutions alone read it. Throws as node_shapes() does.
std::vector<DeviceNode> lower_for_device(const NetSpec& net, int input_channels);

// The convolutions of a net so lowered, each shape once, in the order in which they run.
std::vector<ConvShape> conv_shapes(const NetSpec& net, int input_channels, int rows,
                                   Precision precision);

}  // namespace stoker
