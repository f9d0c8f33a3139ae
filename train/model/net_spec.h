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
  input,       // (N, 3 or 1, H, W), normalised
  conv,        // 2-D: kernel, stride, padding; bias optional
  batch_norm,  // per channel, training statistics per micro-batch
  relu,
  gelu,  // exact (erf)
  tanh,
  sigmoid,
  max_pool,           // kernel, stride, padding
  avg_pool,           // kernel, stride, padding; the padding's zeros count
  adaptive_avg_pool,  // to `output` pixels, as torch.nn.AdaptiveAvgPool2d
  add,                // of two inputs
  concat,             // of the channels of all inputs, in order
  pad_channels,       // appends zero channels up to out_channels; stride 2 takes every second pixel
                      // (ResNet option A)
  dropout,  // in training, zeroes values at `rate` and scales the others by 1 / (1 - rate)
  linear,   // (N, C) -> (N, out), output scaled by `scale`; bias optional; a head
};

// The losses of a net's heads.
enum class LossKind : uint8_t {
  softmax,  // cross-entropy over the classes
  binary,   // a sigmoid and cross-entropy per output, averaged over the outputs (BCEWithLogitsLoss)
};

// How first weights are drawn. A bias is uniform in +-1 / sqrt(fan_in), as in PyTorch, or 0.
enum class WeightInit : uint8_t {
  uniform,         // PyTorch's default: U(-b, b), b = 1 / sqrt(fan_in)
  kaiming_out,     // N(0, 2 / fan_out)
  kaiming_in,      // N(0, 2 / fan_in)
  normal,          // N(0, init_deviation^2)
  glorot_uniform,  // Keras' default: U(-b, b), b = sqrt(6 / (fan_in + fan_out))
  dirac,           // airbench: uniform, then the first min(out, in) filters of a padded convolution
                   // pass their channel through
};

struct NetNode {
  OpKind kind = OpKind::input;
  std::string name;              // prefix of its parameters: "layer1.0.conv1"; "" if it has none
  int input = -1;                // index of its (first) input node
  std::vector<int> more_inputs;  // add: one; concat: any number
  int out_channels = 0;
  Size kernel{1, 1};
  int stride = 1;
  Size padding{0, 0};  // on both sides
  bool ceil = false;   // max_pool: the last window may reach beyond the padding (ceil_mode)
  Size output{1, 1};   // adaptive_avg_pool
  bool bias = false;
  // conv: a fully connected layer. Its kernel covers the whole input, and its weight is saved as a
  // matrix (out, C * H * W).
  bool flat = false;
  float eps = 1e-5f;  // batch_norm
  // batch_norm, as in PyTorch: new = (1 - momentum) * old + momentum * batch
  float momentum = 0.1f;
  float scale = 1.0f;  // linear
  // linear: the weight of its loss. Every linear node but the last is an auxiliary head, which is
  // left out in evaluation.
  float loss_weight = 1.0f;
  float rate = 0;                         // dropout
  WeightInit init = WeightInit::uniform;  // conv, linear
  float init_deviation = 0;
  bool zero_bias = false;
};

struct NetSpec {
  std::string name;
  Size input;
  int input_channels = 3;  // 1: of a pixel's three values the net sees the first; for gray images
  int classes = 0;
  LossKind loss = LossKind::softmax;
  std::vector<NetNode> nodes;  // nodes.back() gives the logits
};

struct NodeShape {
  int channels = 0, height = 0, width = 0;
};
// Throws std::invalid_argument naming the node.
std::vector<NodeShape> node_shapes(const NetSpec& net);
// Returns the shape of the node at `index`, given those of all earlier nodes. Throws likewise.
NodeShape node_shape(const NetSpec& net, size_t index, const std::vector<NodeShape>& earlier);
std::vector<int> inputs_of(const NetNode& node);  // in order
int label_count(const NetSpec& net);  // labels are below it: 2 for a single binary output
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

// The extents of a convolution's weight, OIHW, also where it is saved as a matrix.
struct ConvExtents {
  int64_t out = 0, in = 0, height = 0, width = 0;
};
ConvExtents conv_extents(const NetSpec& net, const TensorInfo& weight);

std::vector<TensorInfo> parameter_table(const NetSpec& net);  // the trained tensors
// running_mean and running_var of each batch_norm.
std::vector<TensorInfo> statistics_table(const NetSpec& net);
int64_t total_count(const std::vector<TensorInfo>& table);
double forward_flops(const NetSpec& net);  // per image, multiply-adds counted as 2

}  // namespace stoker
