// Initial values of a net's parameters and statistics, as PyTorch and the recipes draw them. Pure
// functions of (net, options): every machine gets the same numbers up to the last bit of its libm.
#pragma once

#include <cstdint>
#include <vector>

#include "train/model/net_spec.h"

namespace stoker {

enum class ConvInit : uint8_t {
  uniform,         // PyTorch's default: U(-b, b), b = 1 / sqrt(fan_in)
  kaiming_normal,  // N(0, 2 / fan_out), as in torchvision's ResNets
  dirac,           // airbench: uniform, then the first min(out, in) filters of a padded convolution
                   // pass their channel through; convolution biases are 0
};

struct InitOptions {
  uint64_t seed = 0;
  ConvInit conv = ConvInit::uniform;
  bool zero_gamma = false;  // the last batch norm before every addition starts at weight 0
};

InitOptions default_init(const NetSpec& net, uint64_t seed);  // airnet*: dirac; others: kaiming

std::vector<float> initial_parameters(const NetSpec& net, const InitOptions& options);
std::vector<float> initial_statistics(const NetSpec& net);  // means 0, variances 1

}  // namespace stoker
