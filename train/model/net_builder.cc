#include "train/model/net_builder.h"

namespace stoker {

NetBuilder::NetBuilder(const std::string& name, Size input, int classes) {
  net_.name = name;
  net_.input = input;
  net_.classes = classes;
  append({});
}

void NetBuilder::init(WeightInit init, float deviation, bool zero_bias) {
  init_ = init;
  init_deviation_ = deviation;
  zero_bias_ = zero_bias;
}

void NetBuilder::gray_input() {
  net_.input_channels = 1;
  shapes_[0] = node_shape(net_, 0, {});
}

int NetBuilder::append(NetNode node) {
  net_.nodes.push_back(std::move(node));
  shapes_.push_back(node_shape(net_, net_.nodes.size() - 1, shapes_));
  return static_cast<int>(net_.nodes.size()) - 1;
}

NetNode NetBuilder::weighted(OpKind kind, const std::string& name, int input) const {
  NetNode node;
  node.kind = kind;
  node.name = name;
  node.input = input;
  node.init = init_;
  node.init_deviation = init_deviation_;
  node.zero_bias = zero_bias_;
  return node;
}

int NetBuilder::conv(const std::string& name, int input, int out_channels, int kernel, int stride,
                     int padding, bool bias) {
  return conv(name, input, out_channels, Size{kernel, kernel}, stride, Size{padding, padding},
              bias);
}

int NetBuilder::conv(const std::string& name, int input, int out_channels, Size kernel, int stride,
                     Size padding, bool bias) {
  NetNode node = weighted(OpKind::conv, name, input);
  node.out_channels = out_channels;
  node.kernel = kernel;
  node.stride = stride;
  node.padding = padding;
  node.bias = bias;
  return append(node);
}

int NetBuilder::fully_connected(const std::string& name, int input, int out_channels) {
  NetNode node = weighted(OpKind::conv, name, input);
  node.out_channels = out_channels;
  node.kernel = {shapes_[input].width, shapes_[input].height};
  node.bias = true;
  node.flat = true;
  return append(node);
}

int NetBuilder::batch_norm(const std::string& name, int input, float eps, float momentum) {
  NetNode node;
  node.kind = OpKind::batch_norm;
  node.name = name;
  node.input = input;
  node.eps = eps;
  node.momentum = momentum;
  return append(node);
}

int NetBuilder::max_pool(int input, int kernel, int stride, int padding, bool ceil) {
  NetNode node;
  node.kind = OpKind::max_pool;
  node.input = input;
  node.kernel = {kernel, kernel};
  node.stride = stride;
  node.padding = {padding, padding};
  node.ceil = ceil;
  return append(node);
}

int NetBuilder::avg_pool(int input, int kernel, int stride, int padding) {
  NetNode node;
  node.kind = OpKind::avg_pool;
  node.input = input;
  node.kernel = {kernel, kernel};
  node.stride = stride;
  node.padding = {padding, padding};
  return append(node);
}

int NetBuilder::adaptive_avg_pool(int input, Size output) {
  NetNode node;
  node.kind = OpKind::adaptive_avg_pool;
  node.input = input;
  node.output = output;
  return append(node);
}

int NetBuilder::plain(OpKind kind, int input) {
  NetNode node;
  node.kind = kind;
  node.input = input;
  return append(node);
}

int NetBuilder::add(int input, int other) {
  NetNode node;
  node.kind = OpKind::add;
  node.input = input;
  node.more_inputs = {other};
  return append(node);
}

int NetBuilder::concat(const std::vector<int>& inputs) {
  NetNode node;
  node.kind = OpKind::concat;
  node.input = inputs.front();
  node.more_inputs.assign(inputs.begin() + 1, inputs.end());
  return append(node);
}

int NetBuilder::pad_channels(int input, int out_channels, int stride) {
  NetNode node;
  node.kind = OpKind::pad_channels;
  node.input = input;
  node.out_channels = out_channels;
  node.stride = stride;
  return append(node);
}

int NetBuilder::dropout(int input, float rate) {
  NetNode node;
  node.kind = OpKind::dropout;
  node.input = input;
  node.rate = rate;
  return append(node);
}

int NetBuilder::linear(const std::string& name, int input, bool bias, float scale,
                       float loss_weight) {
  NetNode node = weighted(OpKind::linear, name, input);
  node.out_channels = net_.classes;
  node.bias = bias;
  node.scale = scale;
  node.loss_weight = loss_weight;
  return append(node);
}

NetSpec NetBuilder::finish() {
  node_shapes(net_);
  return std::move(net_);
}

}  // namespace stoker
