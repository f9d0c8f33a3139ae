// torchvision's GoogLeNet: Szegedy et al. 2014, with batch norm, and with 3x3 convolutions where
// the paper has 5x5. Two auxiliary heads count 0.3 each in training.
#include "train/model/net_builder.h"
#include "train/model/nets/model_table.h"

namespace stoker {
namespace {

constexpr float kGoogLeNetEps = 1e-3f;
constexpr float kGoogLeNetDropout = 0.2f;
constexpr float kAuxDropout = 0.7f;
constexpr float kGoogLeNetAuxWeight = 0.3f;

int basic_conv(NetBuilder& net, const std::string& name, int x, int channels, int kernel,
               int stride = 1) {
  x = net.conv(name + ".conv", x, channels, kernel, stride, kernel / 2);
  return net.plain(OpKind::relu, net.batch_norm(name + ".bn", x, kGoogLeNetEps, kNormMomentum));
}

// Channels of a block: 1x1; 3x3 and its reduction before; likewise "5x5"; after the pool.
struct Block {
  const char* name;
  int one, three_before, three, five_before, five, pool;
};

int inception(NetBuilder& net, int x, const Block& b) {
  const std::string name = std::string(b.name) + ".branch";
  const int one = basic_conv(net, name + "1", x, b.one, 1);
  int three = basic_conv(net, name + "2.0", x, b.three_before, 1);
  three = basic_conv(net, name + "2.1", three, b.three, 3);
  int five = basic_conv(net, name + "3.0", x, b.five_before, 1);
  five = basic_conv(net, name + "3.1", five, b.five, 3);
  const int pool = basic_conv(net, name + "4.1", net.max_pool(x, 3, 1, 1, true), b.pool, 1);
  return net.concat({one, three, five, pool});
}

void googlenet_auxiliary(NetBuilder& net, const std::string& name, int x) {
  x = basic_conv(net, name + ".conv", net.adaptive_avg_pool(x, {4, 4}), 128, 1);
  x = net.plain(OpKind::relu, net.fully_connected(name + ".fc1", x, 1024));
  net.linear(name + ".fc2", net.dropout(x, kAuxDropout), true, 1.0f, kGoogLeNetAuxWeight);
}

NetSpec make_googlenet(const NetRequest& request) {
  NetBuilder net(request.name, request.input, request.classes);
  // torchvision truncates at 200 deviations, which is no truncation.
  net.init(WeightInit::normal, 0.01f);
  int x = basic_conv(net, "conv1", 0, 64, 7, 2);
  x = net.max_pool(x, 3, 2, 0, true);
  x = basic_conv(net, "conv2", x, 64, 1);
  x = basic_conv(net, "conv3", x, 192, 3);
  x = net.max_pool(x, 3, 2, 0, true);
  x = inception(net, x, {"inception3a", 64, 96, 128, 16, 32, 32});
  x = inception(net, x, {"inception3b", 128, 128, 192, 32, 96, 64});
  x = net.max_pool(x, 3, 2, 0, true);
  const int first = x = inception(net, x, {"inception4a", 192, 96, 208, 16, 48, 64});
  x = inception(net, x, {"inception4b", 160, 112, 224, 24, 64, 64});
  x = inception(net, x, {"inception4c", 128, 128, 256, 24, 64, 64});
  const int second = x = inception(net, x, {"inception4d", 112, 144, 288, 32, 64, 64});
  x = inception(net, x, {"inception4e", 256, 160, 320, 32, 128, 128});
  x = net.max_pool(x, 2, 2, 0, true);
  x = inception(net, x, {"inception5a", 256, 160, 320, 32, 128, 128});
  x = inception(net, x, {"inception5b", 384, 192, 384, 48, 128, 128});
  googlenet_auxiliary(net, "aux1", first);
  googlenet_auxiliary(net, "aux2", second);
  x = net.dropout(net.adaptive_avg_pool(x, {1, 1}), kGoogLeNetDropout);
  net.linear("fc", x, true, 1.0f);
  return net.finish();
}

// Mean and deviation are those of torchvision's weights (its `transform_input`).
Recipe googlenet_recipe(const std::string& name) {
  Recipe recipe = imagenet_recipe(name);
  recipe.mean = recipe.stddev = {0.5f, 0.5f, 0.5f};
  return recipe;
}

}  // namespace

std::vector<Model> googlenet_models() {
  return {{"googlenet", {}, make_googlenet, googlenet_recipe}};
}

}  // namespace stoker
