// The table of models. A new one is a file of this folder with a function that returns its entries,
// and the function's name in STOKER_MODEL_FAMILIES. Values; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/model/net_spec.h"
#include "train/model/recipe.h"

namespace stoker {

struct NetRequest {
  std::string name;
  Size input;
  int classes = 0;
  std::vector<int> widths;  // as many as the model has
};

struct Model {
  std::string name;
  std::vector<int> widths;  // channels per stage
  // Throws std::invalid_argument for a size that does not fit.
  std::function<NetSpec(const NetRequest& request)> make;
  std::function<Recipe(const std::string& name)> recipe;
};

// PyTorch's defaults of a batch norm.
inline constexpr float kNormEps = 1e-5f;
inline constexpr float kNormMomentum = 0.1f;

// A family is a file of this folder:
//   airnet, airnet-narrow      cifar10-airbench's 94 % net (whitening convolution, GELU); 32x32
//                              only; widths 64/256/256 and 32/128/128
//   alexnet                    torchvision's (Krizhevsky 2014), without local response norms
//   resnet20/32/44/56/110      He et al. for CIFAR: 16/32/64 channels, option A shortcuts
//   densenet40, densenet100    Huang et al. for CIFAR: growth 12, no bottleneck
//   googlenet, inception_v3    torchvision's, with their auxiliary heads
//   resnet18/34/50/101/152     torchvision's names; stride in the 3x3 convolution (v1.5)
//   mlp41m                     a dense net of 41 million weights over 100x80 gray pixels, two
//                              classes
//   vgg16, vgg19, vgg16_bn, vgg19_bn
#define STOKER_MODEL_FAMILIES                                                            \
  airnet_models, alexnet_models, cifar_resnet_models, densenet_models, googlenet_models, \
      imagenet_resnet_models, inception_models, mlp_models, vgg_models
using ModelFamily = std::vector<Model>();
ModelFamily STOKER_MODEL_FAMILIES;

// Parts of recipes that several families share.
Recipe cifar_recipe(const std::string& name);  // pixels of CIFAR: pad by 4, crop, flip
// "ImageNet in 1 Hour" (Goyal et al. 2017), with a cosine and label smoothing as in later recipes.
Recipe imagenet_recipe(const std::string& name);

}  // namespace stoker
