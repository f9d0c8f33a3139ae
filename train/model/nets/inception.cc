// torchvision's Inception v3: Szegedy et al. 2015, "Rethinking the Inception architecture". The
// auxiliary head counts 0.4 in training, as in torchvision's reference; it needs 299 pixels.
#include "train/model/net_builder.h"
#include "train/model/nets/model_table.h"

namespace stoker {
namespace {

constexpr float kInceptionEps = 1e-3f;
constexpr float kInceptionDropout = 0.5f;
constexpr float kInceptionAuxWeight = 0.4f;

struct ConvWindow {
  Size kernel;
  int stride = 1;
  Size padding{0, 0};
};
constexpr ConvWindow k1x1{{1, 1}};
constexpr ConvWindow k3x3{{3, 3}, 1, {1, 1}};
constexpr ConvWindow k3x3Half{{3, 3}, 2};  // halves the size
constexpr ConvWindow k5x5{{5, 5}, 1, {2, 2}};
// Named as torchvision writes them: height x width.
constexpr ConvWindow k1x7{{7, 1}, 1, {3, 0}};
constexpr ConvWindow k7x1{{1, 7}, 1, {0, 3}};
constexpr ConvWindow k1x3{{3, 1}, 1, {1, 0}};
constexpr ConvWindow k3x1{{1, 3}, 1, {0, 1}};

// The convolutions of one module, whose names begin with that of the module.
struct Module {
  NetBuilder& net;
  std::string name;

  int conv(const char* part, int x, int channels, const ConvWindow& w) const {
    const std::string full = name + part;
    x = net.conv(full + ".conv", x, channels, w.kernel, w.stride, w.padding);
    return net.plain(OpKind::relu, net.batch_norm(full + ".bn", x, kInceptionEps, kNormMomentum));
  }
};

int block_a(const Module& m, int x, int pool_channels) {
  const int one = m.conv(".branch1x1", x, 64, k1x1);
  int five = m.conv(".branch5x5_1", x, 48, k1x1);
  five = m.conv(".branch5x5_2", five, 64, k5x5);
  int three = m.conv(".branch3x3dbl_1", x, 64, k1x1);
  three = m.conv(".branch3x3dbl_2", three, 96, k3x3);
  three = m.conv(".branch3x3dbl_3", three, 96, k3x3);
  const int pool = m.conv(".branch_pool", m.net.avg_pool(x, 3, 1, 1), pool_channels, k1x1);
  return m.net.concat({one, five, three, pool});
}

int block_b(const Module& m, int x) {
  const int three = m.conv(".branch3x3", x, 384, k3x3Half);
  int twice = m.conv(".branch3x3dbl_1", x, 64, k1x1);
  twice = m.conv(".branch3x3dbl_2", twice, 96, k3x3);
  twice = m.conv(".branch3x3dbl_3", twice, 96, k3x3Half);
  return m.net.concat({three, twice, m.net.max_pool(x, 3, 2, 0)});
}

int block_c(const Module& m, int x, int width) {
  const int one = m.conv(".branch1x1", x, 192, k1x1);
  int seven = m.conv(".branch7x7_1", x, width, k1x1);
  seven = m.conv(".branch7x7_2", seven, width, k1x7);
  seven = m.conv(".branch7x7_3", seven, 192, k7x1);
  int twice = m.conv(".branch7x7dbl_1", x, width, k1x1);
  twice = m.conv(".branch7x7dbl_2", twice, width, k7x1);
  twice = m.conv(".branch7x7dbl_3", twice, width, k1x7);
  twice = m.conv(".branch7x7dbl_4", twice, width, k7x1);
  twice = m.conv(".branch7x7dbl_5", twice, 192, k1x7);
  const int pool = m.conv(".branch_pool", m.net.avg_pool(x, 3, 1, 1), 192, k1x1);
  return m.net.concat({one, seven, twice, pool});
}

int block_d(const Module& m, int x) {
  int three = m.conv(".branch3x3_1", x, 192, k1x1);
  three = m.conv(".branch3x3_2", three, 320, k3x3Half);
  int seven = m.conv(".branch7x7x3_1", x, 192, k1x1);
  seven = m.conv(".branch7x7x3_2", seven, 192, k1x7);
  seven = m.conv(".branch7x7x3_3", seven, 192, k7x1);
  seven = m.conv(".branch7x7x3_4", seven, 192, k3x3Half);
  return m.net.concat({three, seven, m.net.max_pool(x, 3, 2, 0)});
}

int block_e(const Module& m, int x) {
  const int one = m.conv(".branch1x1", x, 320, k1x1);
  const int three = m.conv(".branch3x3_1", x, 384, k1x1);
  const int three_a = m.conv(".branch3x3_2a", three, 384, k1x3);
  const int three_b = m.conv(".branch3x3_2b", three, 384, k3x1);
  int twice = m.conv(".branch3x3dbl_1", x, 448, k1x1);
  twice = m.conv(".branch3x3dbl_2", twice, 384, k3x3);
  const int twice_a = m.conv(".branch3x3dbl_3a", twice, 384, k1x3);
  const int twice_b = m.conv(".branch3x3dbl_3b", twice, 384, k3x1);
  const int pool = m.conv(".branch_pool", m.net.avg_pool(x, 3, 1, 1), 192, k1x1);
  return m.net.concat({one, three_a, three_b, twice_a, twice_b, pool});
}

void inception_auxiliary(NetBuilder& net, int x) {
  const Module aux{net, "AuxLogits"};
  x = aux.conv(".conv0", net.avg_pool(x, 5, 3, 0), 128, k1x1);
  x = aux.conv(".conv1", x, 768, {{5, 5}});
  net.init(WeightInit::normal, 0.001f);
  net.linear("AuxLogits.fc", net.adaptive_avg_pool(x, {1, 1}), true, 1.0f, kInceptionAuxWeight);
}

NetSpec make_inception(const NetRequest& request) {
  NetBuilder net(request.name, request.input, request.classes);
  // torchvision truncates at 20 deviations, which is no truncation.
  net.init(WeightInit::normal, 0.1f);
  const auto module = [&](const char* name) { return Module{net, name}; };
  int x = module("Conv2d_1a_3x3").conv("", 0, 32, k3x3Half);
  x = module("Conv2d_2a_3x3").conv("", x, 32, {{3, 3}});
  x = module("Conv2d_2b_3x3").conv("", x, 64, k3x3);
  x = net.max_pool(x, 3, 2, 0);
  x = module("Conv2d_3b_1x1").conv("", x, 80, k1x1);
  x = module("Conv2d_4a_3x3").conv("", x, 192, {{3, 3}});
  x = net.max_pool(x, 3, 2, 0);
  x = block_a(module("Mixed_5b"), x, 32);
  x = block_a(module("Mixed_5c"), x, 64);
  x = block_a(module("Mixed_5d"), x, 64);
  x = block_b(module("Mixed_6a"), x);
  x = block_c(module("Mixed_6b"), x, 128);
  x = block_c(module("Mixed_6c"), x, 160);
  x = block_c(module("Mixed_6d"), x, 160);
  x = block_c(module("Mixed_6e"), x, 192);
  inception_auxiliary(net, x);
  net.init(WeightInit::normal, 0.1f);
  x = block_d(module("Mixed_7a"), x);
  x = block_e(module("Mixed_7b"), x);
  x = block_e(module("Mixed_7c"), x);
  x = net.dropout(net.adaptive_avg_pool(x, {1, 1}), kInceptionDropout);
  net.linear("fc", x, true, 1.0f);
  return net.finish();
}

// Mean and deviation are those of torchvision's weights (its `transform_input`).
Recipe inception_recipe(const std::string& name) {
  Recipe recipe = imagenet_recipe(name);
  recipe.mean = recipe.stddev = {0.5f, 0.5f, 0.5f};
  recipe.set_input({299, 299});
  return recipe;
}

}  // namespace

std::vector<Model> inception_models() {
  return {{"inception_v3", {}, make_inception, inception_recipe}};
}

}  // namespace stoker
