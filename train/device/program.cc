#include "train/device/program.h"

#include <algorithm>
#include <stdexcept>

namespace stoker {

void GraphRunner::run(std::unique_ptr<DeviceGraph>& graph, bool ready,
                      const std::function<void()>& work) {
  if (!wanted_ || !ready || !problem_.empty()) return work();
  if (graph == nullptr) {
    try {
      graph = capture(work);
    } catch (const std::runtime_error& error) {
      problem_ = error.what();
      return work();
    }
  }
  graph->launch();
}

std::unique_ptr<DeviceGraph> GraphRunner::capture(const std::function<void()>& work) {
  ops_.begin_capture();
  try {
    work();
  } catch (...) {
    try {
      ops_.end_capture();  // so that the stream runs queued work again
    } catch (const std::runtime_error&) {
      // The first error is the one to report.
    }
    throw;
  }
  return ops_.end_capture();
}

ConvShape conv_shape(const NetSpec& net, const std::vector<FusedNode>& nodes, int index, int rows,
                     Precision precision) {
  const FusedNode& node = nodes[index];
  const NodeShape& in = nodes[node.input].shape;
  const NetNode& spec = net.nodes[node.node];
  ConvShape shape;
  shape.rows = rows;
  shape.type = precision;
  shape.out_channels = node.shape.channels;
  shape.out_height = node.shape.height;
  shape.out_width = node.shape.width;
  if (spec.flat) {
    shape.in_channels = in.channels * in.height * in.width;
    shape.in_height = shape.in_width = 1;
    return shape;
  }
  shape.in_channels = in.channels;
  if (node.input == 0) shape.read_channels = net.input_channels;
  shape.in_height = in.height;
  shape.in_width = in.width;
  shape.kernel = spec.kernel;
  shape.stride = spec.stride;
  shape.padding = spec.padding;
  return shape;
}

std::vector<ConvShape> conv_shapes(const NetSpec& net, const FusionRules& rules, int rows,
                                   Precision precision) {
  const std::vector<FusedNode> nodes = lower(net, rules);
  std::vector<ConvShape> shapes;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    if (nodes[i].kind != OpKind::conv) continue;
    const ConvShape shape = conv_shape(net, nodes, i, rows, precision);
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace stoker
