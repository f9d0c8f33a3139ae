// What a file of this folder knows about its models. A new model is a file with a function that
// returns its entries, declared here and called in models.cc. Values; any thread.
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

std::vector<Model> airnet_models();
std::vector<Model> alexnet_models();
std::vector<Model> cifar_resnet_models();
std::vector<Model> densenet_models();
std::vector<Model> googlenet_models();
std::vector<Model> imagenet_resnet_models();
std::vector<Model> inception_models();
std::vector<Model> mlp_models();
std::vector<Model> vgg_models();

// Parts of recipes that several families share.
Recipe cifar_recipe(const std::string& name);  // pixels of CIFAR: pad by 4, crop, flip
// "ImageNet in 1 Hour" (Goyal et al. 2017), with a cosine and label smoothing as in later recipes.
Recipe imagenet_recipe(const std::string& name);

}  // namespace stoker
