// The convolutions of a net as a device engine runs it. Pure; values.
#pragma once

#include <vector>

#include "train/device/types.h"
#include "train/graph/lowering.h"

namespace stoker {

// Returns each shape once, in the order in which they run. Throws as node_shapes() does.
std::vector<ConvShape> conv_shapes(const NetSpec& net, const FusionRules& rules, int rows,
                                   Precision precision);

}  // namespace stoker
