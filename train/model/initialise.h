// Initial values of a net's parameters and statistics, drawn as its nodes say (WeightInit). Pure
// functions of (net, options): every machine gets the same numbers up to the last bit of its libm.
#pragma once

#include <cstdint>
#include <vector>

#include "train/model/net_spec.h"

namespace stoker {

struct InitOptions {
  uint64_t seed = 0;
  bool zero_gamma = false;  // the last batch norm before every addition starts at weight 0
};

std::vector<float> initial_parameters(const NetSpec& net, const InitOptions& options);
std::vector<float> initial_statistics(const NetSpec& net);  // means 0, variances 1

}  // namespace stoker
