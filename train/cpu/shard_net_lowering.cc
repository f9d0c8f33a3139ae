#include "train/cpu/shard_net_lowering.h"

namespace stoker {
std::vector<LoweredOp> lower(const NetSpec& net) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  const std::vector<int> readers = readers_of_nodes(net);
  std::vector<LoweredOp> ops;
  std::vector<int> op_of_node(net.nodes.size(), -1);
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NetNode& node = net.nodes[i];
    if (node.kind == OpKind::relu && readers[node.input] == 1) {
      LoweredOp& producer = ops[op_of_node[node.input]];
      const bool fusible = producer.kind == OpKind::batch_norm || producer.kind == OpKind::add;
      if (fusible && !producer.relu) {
        producer.relu = true;
        op_of_node[i] = op_of_node[node.input];
        continue;
      }
    }
    LoweredOp op;
    op.kind = node.kind;
    op.node = static_cast<int>(i);
    op.input = node.input >= 0 ? op_of_node[node.input] : -1;
    op.input2 = node.kind == OpKind::add ? op_of_node[node.input2] : -1;
    op.shape = shapes[i];
    op_of_node[i] = static_cast<int>(ops.size());
    ops.push_back(op);
  }
  for (size_t i = 1; i < ops.size(); ++i) {
    ++ops[ops[i].input].readers;
    if (ops[i].input2 >= 0) ++ops[ops[i].input2].readers;
  }
  return ops;
}

}  // namespace stoker
