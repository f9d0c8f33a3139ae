#include "train/model/models.h"

#include <functional>
#include <map>
#include <stdexcept>

namespace stoker {
namespace {

using Widths = std::vector<int>;
using Factory = std::function<NetSpec(const std::string&, Size, int, const Widths&)>;

struct Model {
  Widths widths;
  Factory make;
};

const std::map<std::string, Model>& models() {
  static const std::map<std::string, Model> all = [] {
    std::map<std::string, Model> result;
    result["airnet"] = {{64, 256, 256}, make_airnet};
    result["airnet-narrow"] = {{32, 128, 128}, make_airnet};
    for (int depth : {20, 32, 44, 56, 110}) {
      result["resnet" + std::to_string(depth)] = {
          {16, 32, 64}, [depth](const std::string& name, Size input, int classes, const Widths& w) {
            return make_cifar_resnet(name, input, classes, depth, w);
          }};
    }
    for (int depth : {18, 34, 50}) {
      result["resnet" + std::to_string(depth)] = {
          {64, 128, 256, 512},
          [depth](const std::string& name, Size input, int classes, const Widths& w) {
            return make_imagenet_resnet(name, input, classes, depth, w);
          }};
    }
    return result;
  }();
  return all;
}

// airbench uses 1e-12 with fp16 inputs. With fp32 statistics, that would amplify the rounding noise
// of dead channels a million times. PyTorch's default is far below the variance of any live
// channel.
constexpr float kAirnetEps = 1e-5f;
// airbench's "momentum 0.6" is the weight of the old value; here it is that of the new one.
constexpr float kAirnetMomentum = 0.4f;

}  // namespace

std::vector<std::string> list_models() {
  std::vector<std::string> names;
  for (const auto& [name, model] : models()) names.push_back(name);
  return names;
}

NetSpec make_net(const std::string& name, Size input, int classes, const ModelOptions& options) {
  const auto found = models().find(name);
  if (found == models().end()) {
    std::string known;
    for (const std::string& other : list_models()) known += " " + other;
    throw std::invalid_argument("unknown model '" + name + "'; known:" + known);
  }
  const Model& model = found->second;
  const Widths& widths = options.widths.empty() ? model.widths : options.widths;
  if (widths.size() != model.widths.size()) {
    throw std::invalid_argument("model '" + name + "' takes " +
                                std::to_string(model.widths.size()) + " widths, not " +
                                std::to_string(widths.size()));
  }
  return model.make(name, input, classes, widths);
}

NetSpec make_airnet(const std::string& name, Size input, int classes, const Widths& widths) {
  if (input.width != 32 || input.height != 32) {
    throw std::invalid_argument("model '" + name + "' is made for 32x32 pixels, not " +
                                std::to_string(input.width) + "x" + std::to_string(input.height));
  }
  NetBuilder net(name, input, classes);
  int x = net.conv("whiten", 0, 24, 2, 1, 0, true);
  x = net.plain(OpKind::gelu, x);
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string prefix = "layers." + std::to_string(i) + ".";
    x = net.conv(prefix + "conv1", x, widths[i], 3, 1, 1);
    x = net.max_pool(x, 2, 2, 0);
    x = net.batch_norm(prefix + "norm1", x, kAirnetEps, kAirnetMomentum);
    x = net.plain(OpKind::gelu, x);
    x = net.conv(prefix + "conv2", x, widths[i], 3, 1, 1);
    x = net.batch_norm(prefix + "norm2", x, kAirnetEps, kAirnetMomentum);
    x = net.plain(OpKind::gelu, x);
  }
  x = net.max_pool(x, 3, 3, 0);
  net.linear("head", x, false, 1.0f / 9.0f);
  return net.finish();
}

NetBuilder::NetBuilder(const std::string& name, Size input, int classes) {
  net_.name = name;
  net_.input = input;
  net_.classes = classes;
  net_.nodes.push_back({});
}

int NetBuilder::append(NetNode node) {
  net_.nodes.push_back(std::move(node));
  return static_cast<int>(net_.nodes.size()) - 1;
}

int NetBuilder::conv(const std::string& name, int input, int out_channels, int kernel, int stride,
                     int padding, bool bias) {
  NetNode node;
  node.kind = OpKind::conv;
  node.name = name;
  node.input = input;
  node.out_channels = out_channels;
  node.kernel = kernel;
  node.stride = stride;
  node.padding = padding;
  node.bias = bias;
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

int NetBuilder::max_pool(int input, int kernel, int stride, int padding) {
  NetNode node;
  node.kind = OpKind::max_pool;
  node.input = input;
  node.kernel = kernel;
  node.stride = stride;
  node.padding = padding;
  return append(node);
}

int NetBuilder::plain(OpKind kind, int input) {
  NetNode node;
  node.kind = kind;
  node.input = input;
  return append(node);
}

int NetBuilder::add(int input, int input2) {
  NetNode node;
  node.kind = OpKind::add;
  node.input = input;
  node.input2 = input2;
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

int NetBuilder::linear(const std::string& name, int input, bool bias, float scale) {
  NetNode node;
  node.kind = OpKind::linear;
  node.name = name;
  node.input = input;
  node.out_channels = net_.classes;
  node.bias = bias;
  node.scale = scale;
  return append(node);
}

NetSpec NetBuilder::finish() {
  node_shapes(net_);
  return std::move(net_);
}

}  // namespace stoker
