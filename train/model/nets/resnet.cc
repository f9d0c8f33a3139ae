// Residual nets: He et al. 2015 for CIFAR (section 4.2), and torchvision's.
#include <array>

#include "train/model/net_builder.h"
#include "train/model/nets/model_table.h"

namespace stoker {
namespace {

int conv_norm(NetBuilder& net, const std::string& conv, const std::string& norm, int x,
              int channels, int kernel, int stride) {
  x = net.conv(conv, x, channels, kernel, stride, kernel / 2);
  return net.batch_norm(norm, x, kNormEps, kNormMomentum);
}

// Adds two 3x3 convolutions; the caller adds the shortcut.
int basic_branch(NetBuilder& net, const std::string& prefix, int x, int channels, int stride) {
  x = conv_norm(net, prefix + "conv1", prefix + "bn1", x, channels, 3, stride);
  x = net.plain(OpKind::relu, x);
  return conv_norm(net, prefix + "conv2", prefix + "bn2", x, channels, 3, 1);
}

// Adds 1x1, 3x3 (with the stride: "v1.5"), and 1x1 to four times the channels.
int bottleneck_branch(NetBuilder& net, const std::string& prefix, int x, int channels, int stride) {
  x = conv_norm(net, prefix + "conv1", prefix + "bn1", x, channels, 1, 1);
  x = net.plain(OpKind::relu, x);
  x = conv_norm(net, prefix + "conv2", prefix + "bn2", x, channels, 3, stride);
  x = net.plain(OpKind::relu, x);
  return conv_norm(net, prefix + "conv3", prefix + "bn3", x, 4 * channels, 1, 1);
}

std::string block_prefix(size_t stage, int block) {
  return "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".";
}

NetSpec make_cifar_resnet(const NetRequest& request, int depth) {
  const std::vector<int>& widths = request.widths;
  NetBuilder net(request.name, request.input, request.classes);
  net.init(WeightInit::kaiming_out);
  int x = conv_norm(net, "conv1", "bn1", 0, widths[0], 3, 1);
  x = net.plain(OpKind::relu, x);
  for (size_t stage = 0; stage < widths.size(); ++stage) {
    for (int block = 0; block < (depth - 2) / 6; ++block) {
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      const int branch = basic_branch(net, block_prefix(stage, block), x, widths[stage], stride);
      const int shortcut = stride == 2 ? net.pad_channels(x, widths[stage], stride) : x;
      x = net.plain(OpKind::relu, net.add(branch, shortcut));
    }
  }
  net.init(WeightInit::uniform);
  net.linear("fc", net.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
  return net.finish();
}

// 64k steps at batch 128 are 164 epochs; the rate is divided by 10 after 32k and 48k steps.
Recipe cifar_resnet_recipe(const std::string& name) {
  Recipe recipe = cifar_recipe(name);
  recipe.epochs = 164;
  recipe.batch = 128;
  recipe.micro_batch_size = 32;
  recipe.optimizer.learning_rate = 0.1;
  recipe.optimizer.lr_ref_batch = 128;
  recipe.schedule.kind = ScheduleKind::step;
  recipe.schedule.milestones = {0.5, 0.75};
  if (name == "resnet110") {  // too high an initial rate otherwise, as the paper says
    recipe.schedule.warmup_epochs = 1;
    recipe.schedule.warmup_start = 0.1;
  }
  return recipe;
}

struct ImageNetShape {
  int depth;
  bool bottleneck;
  std::array<int, 4> blocks;  // per stage
};

constexpr ImageNetShape kImageNetShapes[] = {{18, false, {2, 2, 2, 2}},
                                             {34, false, {3, 4, 6, 3}},
                                             {50, true, {3, 4, 6, 3}},
                                             {101, true, {3, 4, 23, 3}},
                                             {152, true, {3, 8, 36, 3}}};

NetSpec make_imagenet_resnet(const NetRequest& request, const ImageNetShape& shape) {
  const std::vector<int>& widths = request.widths;
  NetBuilder net(request.name, request.input, request.classes);
  net.init(WeightInit::kaiming_out);
  int x = conv_norm(net, "conv1", "bn1", 0, widths[0], 7, 2);
  x = net.max_pool(net.plain(OpKind::relu, x), 3, 2, 1);
  int channels = widths[0];
  for (size_t stage = 0; stage < widths.size(); ++stage) {
    const int out_channels = widths[stage] * (shape.bottleneck ? 4 : 1);
    for (int block = 0; block < shape.blocks[stage]; ++block) {
      const std::string prefix = block_prefix(stage, block);
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      const auto make_branch = shape.bottleneck ? bottleneck_branch : basic_branch;
      const int branch = make_branch(net, prefix, x, widths[stage], stride);
      int shortcut = x;
      if (stride != 1 || channels != out_channels) {
        shortcut = conv_norm(net, prefix + "downsample.0", prefix + "downsample.1", x, out_channels,
                             1, stride);
      }
      x = net.plain(OpKind::relu, net.add(branch, shortcut));
      channels = out_channels;
    }
  }
  net.init(WeightInit::uniform);
  net.linear("fc", net.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
  return net.finish();
}

Recipe imagenet_resnet_recipe(const std::string& name) {
  Recipe recipe = imagenet_recipe(name);
  recipe.zero_gamma = true;
  return recipe;
}

}  // namespace

std::vector<Model> cifar_resnet_models() {
  std::vector<Model> models;
  for (const int depth : {20, 32, 44, 56, 110}) {
    const auto make = [depth](const NetRequest& r) { return make_cifar_resnet(r, depth); };
    models.push_back({"resnet" + std::to_string(depth), {16, 32, 64}, make, cifar_resnet_recipe});
  }
  return models;
}

std::vector<Model> imagenet_resnet_models() {
  std::vector<Model> models;
  for (const ImageNetShape& shape : kImageNetShapes) {
    const auto make = [shape](const NetRequest& r) { return make_imagenet_resnet(r, shape); };
    models.push_back({"resnet" + std::to_string(shape.depth),
                      {64, 128, 256, 512},
                      make,
                      imagenet_resnet_recipe});
  }
  return models;
}

}  // namespace stoker
