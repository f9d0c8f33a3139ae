// The nets that stoker knows by name, as NetSpec values.
//   airnet, airnet-narrow      cifar10-airbench's 94 % net (whitening convolution, GELU); 32x32
//                              only; widths 64/256/256 and 32/128/128
//   resnet20/32/44/56/110      He et al. for CIFAR: 16/32/64 channels, option A shortcuts
//   resnet18/34/50             torchvision's names; stride in the 3x3 convolution (v1.5)
// Parameter names: the ResNets have torchvision's (state_dict keys; conv1, bn1, layer1.0.conv1,
// ..., fc). airnet has whiten.{weight,bias}, layers.{0,1,2}.{conv1,norm1,conv2,norm2}.*,
// head.weight: this is airbench's module order, with words in place of its Sequential indices (0,
// 2, 3, 4, 7).
#pragma once

#include <string>
#include <vector>

#include "train/model/net_spec.h"

namespace stoker {

struct ModelOptions {
  std::vector<int> widths;  // channels per stage; empty: the model's own
};

std::vector<std::string> list_models();
// Throws std::invalid_argument for an unknown name (the message lists the known ones), and for
// widths or a size that do not fit the model.
NetSpec make_net(const std::string& name, Size input, int classes,
                 const ModelOptions& options = {});

// The functions that make_net() calls.
NetSpec make_airnet(const std::string& name, Size input, int classes,
                    const std::vector<int>& widths);
NetSpec make_cifar_resnet(const std::string& name, Size input, int classes, int depth,
                          const std::vector<int>& widths);
NetSpec make_imagenet_resnet(const std::string& name, Size input, int classes, int depth,
                             const std::vector<int>& widths);

// Appends nodes; every method returns the index of the new node.
class NetBuilder {
 public:
  NetBuilder(const std::string& name, Size input, int classes);
  int conv(const std::string& name, int input, int out_channels, int kernel, int stride,
           int padding, bool bias = false);
  int batch_norm(const std::string& name, int input, float eps, float momentum);
  int max_pool(int input, int kernel, int stride, int padding);
  int plain(OpKind kind, int input);  // relu, gelu, global_avg_pool
  int add(int input, int input2);
  int pad_channels(int input, int out_channels, int stride);
  int linear(const std::string& name, int input, bool bias, float scale);
  NetSpec finish();  // validates

 private:
  int append(NetNode node);
  NetSpec net_;
};

}  // namespace stoker
