#include <stdexcept>

#include "train/model/models.h"

namespace stoker {
namespace {

// PyTorch's defaults.
constexpr float kEps = 1e-5f;
constexpr float kMomentum = 0.1f;

int conv_norm(NetBuilder& net, const std::string& conv, const std::string& norm, int x,
              int channels, int kernel, int stride) {
  x = net.conv(conv, x, channels, kernel, stride, kernel / 2);
  return net.batch_norm(norm, x, kEps, kMomentum);
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

}  // namespace

NetSpec make_cifar_resnet(const std::string& name, Size input, int classes, int depth,
                          const std::vector<int>& widths) {
  if ((depth - 2) % 6 != 0) {
    throw std::invalid_argument("a CIFAR ResNet has 6n+2 layers, not " + std::to_string(depth));
  }
  NetBuilder net(name, input, classes);
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
  net.linear("fc", net.plain(OpKind::global_avg_pool, x), true, 1.0f);
  return net.finish();
}

NetSpec make_imagenet_resnet(const std::string& name, Size input, int classes, int depth,
                             const std::vector<int>& widths) {
  const bool bottleneck = depth >= 50;
  const std::vector<int> blocks =
      depth == 18 ? std::vector<int>{2, 2, 2, 2} : std::vector<int>{3, 4, 6, 3};
  NetBuilder net(name, input, classes);
  int x = conv_norm(net, "conv1", "bn1", 0, widths[0], 7, 2);
  x = net.max_pool(net.plain(OpKind::relu, x), 3, 2, 1);
  int channels = widths[0];
  for (size_t stage = 0; stage < widths.size(); ++stage) {
    const int out_channels = widths[stage] * (bottleneck ? 4 : 1);
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string prefix = block_prefix(stage, block);
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      const int branch = bottleneck ? bottleneck_branch(net, prefix, x, widths[stage], stride)
                                    : basic_branch(net, prefix, x, widths[stage], stride);
      int shortcut = x;
      if (stride != 1 || channels != out_channels) {
        shortcut = conv_norm(net, prefix + "downsample.0", prefix + "downsample.1", x, out_channels,
                             1, stride);
      }
      x = net.plain(OpKind::relu, net.add(branch, shortcut));
      channels = out_channels;
    }
  }
  net.linear("fc", net.plain(OpKind::global_avg_pool, x), true, 1.0f);
  return net.finish();
}

}  // namespace stoker
