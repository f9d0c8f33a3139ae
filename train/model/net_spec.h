// A net as a flat list of nodes in topological order, with PyTorch/torchvision's parameter names,
// and tables that name each of its tensors. A value; it does not depend on devices, layouts or
// precision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/image.h"

namespace stoker {

enum class OpKind : uint8_t {
  input,       // (N, 3, H, W), normalised
  conv,        // 2-D, square kernel, stride, padding; bias optional
  batch_norm,  // per channel, training statistics per micro-batch
  relu,
  gelu,             // exact (erf)
  max_pool,         // square kernel, stride, padding
  global_avg_pool,  // (N, C, H, W) -> (N, C, 1, 1)
  add,              // input + input2
  pad_channels,     // appends zero channels up to out_channels; stride 2 takes every second pixel
                    // (ResNet option A)
  linear,           // (N, C) -> (N, out), output scaled by `scale`; bias optional
};

struct NetNode {
  OpKind kind = OpKind::input;
  std::string name;  // prefix of its parameters: "layer1.0.conv1"; "" if it has none
  int input = -1;    // index of its input node
  int input2 = -1;   // add only
  int out_channels = 0;
  int kernel = 1;
  int stride = 1;
  int padding = 0;
  bool bias = false;
  float eps = 1e-5f;  // batch_norm
  // batch_norm, as in PyTorch: new = (1 - momentum) * old + momentum * batch
  float momentum = 0.1f;
  float scale = 1.0f;  // linear
};

struct NetSpec {
  std::string name;
  Size input;
  int classes = 0;
  std::vector<NetNode> nodes;  // nodes.back() gives the logits
};

struct NodeShape {
  int channels = 0, height = 0, width = 0;
};
// Throws std::invalid_argument naming the node.
std::vector<NodeShape> node_shapes(const NetSpec& net);
std::vector<int> readers_of_nodes(const NetSpec& net);  // how often each output is read

enum class ParameterKind : uint8_t {
  conv_weight,
  conv_bias,
  norm_weight,
  norm_bias,
  linear_weight,
  linear_bias
};

// One tensor of the flat buffers. Its values are contiguous in PyTorch's order (OIHW for
// convolutions).
struct TensorInfo {
  std::string name;  // "layer1.0.conv1.weight", "bn1.running_mean"
  std::vector<int64_t> shape;
  int64_t offset = 0;  // in floats, from the start of its flat buffer
  int64_t count = 0;
  ParameterKind kind = ParameterKind::conv_weight;  // parameters only
  int node = -1;
};

std::vector<TensorInfo> parameter_table(const NetSpec& net);  // the trained tensors
// running_mean and running_var of each batch_norm.
std::vector<TensorInfo> statistics_table(const NetSpec& net);
int64_t total_count(const std::vector<TensorInfo>& table);
double forward_flops(const NetSpec& net);  // per image, multiply-adds counted as 2

}  // namespace stoker
