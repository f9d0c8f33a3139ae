#include "train/model/net_spec.h"

#include <stdexcept>

namespace stoker {
namespace {

[[noreturn]] void reject(const NetSpec& net, size_t index, const std::string& why) {
  throw std::invalid_argument("net '" + net.name + "', node " + std::to_string(index) + " '" +
                              net.nodes[index].name + "': " + why);
}

void check_inputs(const NetSpec& net, size_t index) {
  const NetNode& node = net.nodes[index];
  const int limit = static_cast<int>(index);
  if (node.kind == OpKind::input) {
    if (index != 0) reject(net, index, "the input must be node 0, and there is one");
    return;
  }
  if (index == 0) reject(net, index, "node 0 must be the input");
  if (node.input < 0 || node.input >= limit) {
    reject(net, index, "input " + std::to_string(node.input) + " is not an earlier node");
  }
  if (node.kind == OpKind::add && (node.input2 < 0 || node.input2 >= limit)) {
    reject(net, index, "input2 " + std::to_string(node.input2) + " is not an earlier node");
  }
}

// Returns the number of positions of the node's window over `size` pixels.
int windows(const NetSpec& net, size_t index, int size) {
  const NetNode& node = net.nodes[index];
  if (node.kernel < 1 || node.stride < 1 || node.padding < 0 || node.padding >= node.kernel) {
    reject(net, index,
           "kernel " + std::to_string(node.kernel) + ", stride " + std::to_string(node.stride) +
               ", padding " + std::to_string(node.padding) + " do not fit together");
  }
  const int span = size + 2 * node.padding - node.kernel;
  if (span < 0) {
    reject(net, index,
           "kernel " + std::to_string(node.kernel) + " does not fit into " + std::to_string(size) +
               " pixels with padding " + std::to_string(node.padding));
  }
  return span / node.stride + 1;
}

NodeShape windowed(const NetSpec& net, size_t index, const NodeShape& in, int channels) {
  return {channels, windows(net, index, in.height), windows(net, index, in.width)};
}

NodeShape added(const NetSpec& net, size_t index, const NodeShape& a, const NodeShape& b) {
  if (a.channels != b.channels || a.height != b.height || a.width != b.width) {
    const auto text = [](const NodeShape& s) {
      return std::to_string(s.channels) + "x" + std::to_string(s.height) + "x" +
             std::to_string(s.width);
    };
    reject(net, index, "cannot add " + text(a) + " and " + text(b));
  }
  return a;
}

NodeShape padded(const NetSpec& net, size_t index, const NodeShape& in) {
  const NetNode& node = net.nodes[index];
  if (node.out_channels < in.channels || node.stride < 1) {
    reject(net, index,
           "cannot pad " + std::to_string(in.channels) + " channels to " +
               std::to_string(node.out_channels));
  }
  return {node.out_channels, (in.height - 1) / node.stride + 1, (in.width - 1) / node.stride + 1};
}

NodeShape shape_of(const NetSpec& net, size_t index, const std::vector<NodeShape>& shapes) {
  const NetNode& node = net.nodes[index];
  if (node.kind == OpKind::input) return {3, net.input.height, net.input.width};
  const NodeShape& in = shapes[node.input];
  const bool makes_channels = node.kind == OpKind::conv || node.kind == OpKind::linear;
  if (makes_channels && node.out_channels < 1) reject(net, index, "out_channels must be positive");
  switch (node.kind) {
    case OpKind::conv:
      return windowed(net, index, in, node.out_channels);
    case OpKind::max_pool:
      return windowed(net, index, in, in.channels);
    case OpKind::global_avg_pool:
      return {in.channels, 1, 1};
    case OpKind::add:
      return added(net, index, in, shapes[node.input2]);
    case OpKind::pad_channels:
      return padded(net, index, in);
    case OpKind::linear:
      if (in.height != 1 || in.width != 1) reject(net, index, "linear needs a 1x1 input");
      return {node.out_channels, 1, 1};
    default:
      return in;
  }
}

void check_readers(const NetSpec& net) {
  std::vector<bool> read(net.nodes.size(), false);
  for (const NetNode& node : net.nodes) {
    if (node.input >= 0) read[node.input] = true;
    if (node.kind == OpKind::add) read[node.input2] = true;
  }
  for (size_t i = 0; i + 1 < net.nodes.size(); ++i) {
    if (!read[i]) reject(net, i, "no later node reads it");
  }
}

struct TableBuilder {
  std::vector<TensorInfo> table;

  void append(const std::string& prefix, const char* what, std::vector<int64_t> shape,
              ParameterKind kind, size_t node) {
    TensorInfo info;
    info.name = prefix.empty() ? what : prefix + "." + what;
    info.count = 1;
    for (int64_t extent : shape) info.count *= extent;
    info.shape = std::move(shape);
    info.offset = total_count(table);
    info.kind = kind;
    info.node = static_cast<int>(node);
    table.push_back(std::move(info));
  }
};

}  // namespace

std::vector<int> readers_of_nodes(const NetSpec& net) {
  std::vector<int> readers(net.nodes.size(), 0);
  for (const NetNode& node : net.nodes) {
    if (node.input >= 0) ++readers[node.input];
    if (node.kind == OpKind::add) ++readers[node.input2];
  }
  return readers;
}

std::vector<NodeShape> node_shapes(const NetSpec& net) {
  if (net.nodes.empty()) throw std::invalid_argument("net '" + net.name + "' has no nodes");
  if (net.input.width < 1 || net.input.height < 1 || net.classes < 1) {
    throw std::invalid_argument("net '" + net.name + "': input " + std::to_string(net.input.width) +
                                "x" + std::to_string(net.input.height) + " and " +
                                std::to_string(net.classes) + " classes must be positive");
  }
  std::vector<NodeShape> shapes;
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    check_inputs(net, i);
    shapes.push_back(shape_of(net, i, shapes));
  }
  check_readers(net);
  const NodeShape& last = shapes.back();
  if (net.nodes.back().kind != OpKind::linear || last.channels != net.classes) {
    reject(net, net.nodes.size() - 1,
           "the last node must be linear with " + std::to_string(net.classes) + " outputs");
  }
  return shapes;
}

std::vector<TensorInfo> parameter_table(const NetSpec& net) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  TableBuilder out;
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NetNode& node = net.nodes[i];
    if (node.kind == OpKind::conv) {
      out.append(node.name, "weight",
                 {node.out_channels, shapes[node.input].channels, node.kernel, node.kernel},
                 ParameterKind::conv_weight, i);
      if (node.bias) {
        out.append(node.name, "bias", {node.out_channels}, ParameterKind::conv_bias, i);
      }
    } else if (node.kind == OpKind::batch_norm) {
      out.append(node.name, "weight", {shapes[i].channels}, ParameterKind::norm_weight, i);
      out.append(node.name, "bias", {shapes[i].channels}, ParameterKind::norm_bias, i);
    } else if (node.kind == OpKind::linear) {
      out.append(node.name, "weight", {node.out_channels, shapes[node.input].channels},
                 ParameterKind::linear_weight, i);
      if (node.bias) {
        out.append(node.name, "bias", {node.out_channels}, ParameterKind::linear_bias, i);
      }
    }
  }
  return std::move(out.table);
}

std::vector<TensorInfo> statistics_table(const NetSpec& net) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  TableBuilder out;
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NetNode& node = net.nodes[i];
    if (node.kind != OpKind::batch_norm) continue;
    out.append(node.name, "running_mean", {shapes[i].channels}, ParameterKind::norm_weight, i);
    out.append(node.name, "running_var", {shapes[i].channels}, ParameterKind::norm_weight, i);
  }
  return std::move(out.table);
}

int64_t total_count(const std::vector<TensorInfo>& table) {
  return table.empty() ? 0 : table.back().offset + table.back().count;
}

double forward_flops(const NetSpec& net) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  double flops = 0;
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NetNode& node = net.nodes[i];
    if (node.kind != OpKind::conv && node.kind != OpKind::linear) continue;
    const double taps =
        static_cast<double>(shapes[node.input].channels) * node.kernel * node.kernel;
    flops += 2.0 * taps * shapes[i].channels * shapes[i].height * shapes[i].width;
  }
  return flops;
}

}  // namespace stoker
