#include "train/device/conv_shapes.h"

#include <algorithm>

namespace stoker {

std::vector<ConvShape> conv_shapes(const NetSpec& net, const FusionRules& rules, int rows,
                                   Precision precision) {
  const std::vector<FusedNode> nodes = lower(net, rules);
  std::vector<ConvShape> shapes;
  for (const FusedNode& node : nodes) {
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
    shape.kernel = spec.kernel.width;
    shape.stride = spec.stride;
    shape.padding = spec.padding.width;
    shape.type = precision;
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace stoker
