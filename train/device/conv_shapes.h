// The convolutions of a net as a device engine runs it. Pure; values.
#pragma once

#include <vector>

#include "train/device/types.h"
#include "train/graph/lowering.h"

namespace stoker {

// Returns the shape of the convolution `nodes[index]`. A fully connected layer is a 1x1 convolution
// of one pixel that has all values of its input as channels: in memory, both are the same.
ConvShape conv_shape(const NetSpec& net, const std::vector<FusedNode>& nodes, int index, int rows,
                     Precision precision);

// Returns each shape of a net once, in the order in which they run. Throws as node_shapes() does.
std::vector<ConvShape> conv_shapes(const NetSpec& net, const FusionRules& rules, int rows,
                                   Precision precision);

}  // namespace stoker
