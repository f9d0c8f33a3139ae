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
  for (const int input : inputs_of(node)) {
    if (input >= 0 && input < limit) continue;
    reject(net, index, "input " + std::to_string(input) + " is not an earlier node");
  }
  const size_t more = node.more_inputs.size();
  const bool fits = node.kind == OpKind::concat || more == (node.kind == OpKind::add ? 1 : 0);
  if (!fits) reject(net, index, std::to_string(more + 1) + " inputs are not what it takes");
}

// One direction of a window.
struct Window {
  int kernel, stride, padding;
  bool ceil;
};

// Returns the number of positions of the window over `size` pixels.
int windows(const NetSpec& net, size_t index, const Window& w, int size) {
  if (w.kernel < 1 || w.stride < 1 || w.padding < 0 || w.padding >= w.kernel) {
    reject(net, index,
           "kernel " + std::to_string(w.kernel) + ", stride " + std::to_string(w.stride) +
               ", padding " + std::to_string(w.padding) + " do not fit together");
  }
  const int span = size + 2 * w.padding - w.kernel;
  if (span < 0) {
    reject(net, index,
           "kernel " + std::to_string(w.kernel) + " does not fit into " + std::to_string(size) +
               " pixels with padding " + std::to_string(w.padding));
  }
  const int whole = span / w.stride + 1;
  // As in PyTorch, the last window begins inside the image or the padding before it.
  const bool one_more = w.ceil && span % w.stride != 0 && whole * w.stride < size + w.padding;
  return one_more ? whole + 1 : whole;
}

NodeShape windowed(const NetSpec& net, size_t index, const NodeShape& in, int channels) {
  const NetNode& n = net.nodes[index];
  return {channels,
          windows(net, index, {n.kernel.height, n.stride, n.padding.height, n.ceil}, in.height),
          windows(net, index, {n.kernel.width, n.stride, n.padding.width, n.ceil}, in.width)};
}

std::string shape_text(const NodeShape& s) {
  return std::to_string(s.channels) + "x" + std::to_string(s.height) + "x" +
         std::to_string(s.width);
}

NodeShape added(const NetSpec& net, size_t index, const NodeShape& a, const NodeShape& b) {
  if (a.channels != b.channels || a.height != b.height || a.width != b.width) {
    reject(net, index, "cannot add " + shape_text(a) + " and " + shape_text(b));
  }
  return a;
}

NodeShape concatenated(const NetSpec& net, size_t index, const std::vector<NodeShape>& shapes) {
  NodeShape out = shapes[net.nodes[index].input];
  for (const int input : net.nodes[index].more_inputs) {
    const NodeShape& more = shapes[input];
    if (more.height != out.height || more.width != out.width) {
      reject(net, index, "cannot concatenate " + shape_text(out) + " and " + shape_text(more));
    }
    out.channels += more.channels;
  }
  return out;
}

NodeShape convolved(const NetSpec& net, size_t index, const NodeShape& in) {
  const NetNode& node = net.nodes[index];
  if (node.flat && (node.kernel.height != in.height || node.kernel.width != in.width)) {
    reject(net, index,
           "a fully connected layer over " + std::to_string(node.kernel.width) + "x" +
               std::to_string(node.kernel.height) + " pixels gets " + shape_text(in));
  }
  return windowed(net, index, in, node.out_channels);
}

NodeShape adapted(const NetSpec& net, size_t index, const NodeShape& in) {
  const Size& out = net.nodes[index].output;
  if (out.width < 1 || out.height < 1) reject(net, index, "an average pool has no output");
  return {in.channels, out.height, out.width};
}

void check_rate(const NetSpec& net, size_t index) {
  const float rate = net.nodes[index].rate;
  if (rate >= 0 && rate < 1) return;
  reject(net, index, "dropout rate " + std::to_string(rate) + " is not in [0, 1)");
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
  if (node.kind == OpKind::input) {
    return {net.input_channels, net.input.height, net.input.width};
  }
  const NodeShape& in = shapes[node.input];
  const bool makes_channels = node.kind == OpKind::conv || node.kind == OpKind::linear;
  if (makes_channels && node.out_channels < 1) reject(net, index, "out_channels must be positive");
  switch (node.kind) {
    case OpKind::conv:
      return convolved(net, index, in);
    case OpKind::max_pool:
    case OpKind::avg_pool:
      return windowed(net, index, in, in.channels);
    case OpKind::adaptive_avg_pool:
      return adapted(net, index, in);
    case OpKind::add:
      return added(net, index, in, shapes[node.more_inputs[0]]);
    case OpKind::concat:
      return concatenated(net, index, shapes);
    case OpKind::dropout:
      check_rate(net, index);
      return in;
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
    for (const int input : inputs_of(node)) read[input] = true;
  }
  for (size_t i = 0; i + 1 < net.nodes.size(); ++i) {
    if (!read[i] && net.nodes[i].kind != OpKind::linear) reject(net, i, "no later node reads it");
    if (read[i] && net.nodes[i].kind == OpKind::linear) reject(net, i, "a later node reads a head");
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

std::vector<int> inputs_of(const NetNode& node) {
  std::vector<int> inputs;
  if (node.kind != OpKind::input) inputs.push_back(node.input);
  inputs.insert(inputs.end(), node.more_inputs.begin(), node.more_inputs.end());
  return inputs;
}

int label_count(const NetSpec& net) {
  return net.loss == LossKind::binary && net.classes == 1 ? 2 : net.classes;
}

std::vector<int> readers_of_nodes(const NetSpec& net) {
  std::vector<int> readers(net.nodes.size(), 0);
  for (const NetNode& node : net.nodes) {
    for (const int input : inputs_of(node)) ++readers[input];
  }
  return readers;
}

NodeShape node_shape(const NetSpec& net, size_t index, const std::vector<NodeShape>& earlier) {
  check_inputs(net, index);
  return shape_of(net, index, earlier);
}

ConvExtents conv_extents(const NetSpec& net, const TensorInfo& weight) {
  const Size& kernel = net.nodes[weight.node].kernel;
  const int64_t out = weight.shape[0];
  return {out, weight.count / out / kernel.height / kernel.width, kernel.height, kernel.width};
}

std::vector<NodeShape> node_shapes(const NetSpec& net) {
  if (net.nodes.empty()) throw std::invalid_argument("net '" + net.name + "' has no nodes");
  if (net.input.width < 1 || net.input.height < 1 || net.classes < 1) {
    throw std::invalid_argument("net '" + net.name + "': input " + std::to_string(net.input.width) +
                                "x" + std::to_string(net.input.height) + " and " +
                                std::to_string(net.classes) + " classes must be positive");
  }
  if (net.input_channels != 1 && net.input_channels != 3) {
    throw std::invalid_argument("net '" + net.name + "': " + std::to_string(net.input_channels) +
                                " input channels; there must be 1 or 3");
  }
  std::vector<NodeShape> shapes;
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    shapes.push_back(node_shape(net, i, shapes));
    const bool head = net.nodes[i].kind == OpKind::linear;
    if (!head && i + 1 == net.nodes.size()) reject(net, i, "the last node must be linear");
    if (head && shapes[i].channels != net.classes) {
      reject(net, i,
             "a head must have " + std::to_string(net.classes) + " outputs, not " +
                 std::to_string(shapes[i].channels));
    }
  }
  check_readers(net);
  return shapes;
}

std::vector<TensorInfo> parameter_table(const NetSpec& net) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  TableBuilder out;
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NetNode& node = net.nodes[i];
    if (node.kind == OpKind::conv) {
      const NodeShape& in = shapes[node.input];
      const int64_t inputs = int64_t{in.channels} * node.kernel.height * node.kernel.width;
      std::vector<int64_t> shape{node.out_channels, in.channels, node.kernel.height,
                                 node.kernel.width};
      if (node.flat) shape = {node.out_channels, inputs};
      out.append(node.name, "weight", std::move(shape), ParameterKind::conv_weight, i);
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
        static_cast<double>(shapes[node.input].channels) * node.kernel.height * node.kernel.width;
    flops += 2.0 * taps * shapes[i].channels * shapes[i].height * shapes[i].width;
  }
  return flops;
}

}  // namespace stoker
