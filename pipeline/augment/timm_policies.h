// Timm's policies: their text, and what they choose from (timm 1.0, timm/data/auto_augment.py).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/augment/stage.h"
#include "pipeline/augment/timm_ops.h"

namespace stoker {

inline constexpr size_t kMaxTimmOperations = 15;  // of a set

// Operations, with a weight for each, or none: equal chances.
struct TimmSet {
  std::span<const TimmOp> operations{};
  std::span<const double> weights{};
};

struct TimmChoice {
  TimmOp op;
  double probability;
  double magnitude;
};
using TimmPair = std::array<TimmChoice, 2>;  // one after the other

// The choices of rand. `name`: "", "weights", "3a" or "3aw".
TimmSet timm_set(const std::string& name, bool increasing);
// The choices of augmix.
std::span<const TimmOp> timm_mix_operations();
// "original", "v0" or "3a"; "originalr" and "v0r" are the first two with posterize_increasing.
std::vector<TimmPair> timm_policy(const std::string& name);

inline constexpr int kMaxTimmChains = 16;

// The text that says which of timm's policies is meant, as timm's create_transform(auto_augment=)
// takes it: a name, then sections of a key and a number:
//
//   rand [-mM] [-nN] [-pP] [-mstdS] [-mmaxX] [-incI] [-tSET]      RandAugment
//   original | originalr | v0 | v0r | 3a   [-mstdS]               AutoAugment
//   augmix [-mM] [-wW] [-dD] [-aA] [-mstdS]                       AugMix
//
//   M    magnitude, 0 to 100; default 10, of augmix 3
//   N    operations of each image, 1 to 16; default 2
//   P    probability of each of them, 0 to 1; default 0.5
//   S    deviation of the magnitude; default 0. Of rand above 100, and of augmix by default: evenly
//        from 0 to the magnitude
//   X    the largest magnitude, 1 to 100; default 10
//   I    1: operations that do more with a larger magnitude; default 0
//   SET  weights, 3a or 3aw: another set of operations, with weights for the first and the last
//   W, D chains, 1 to 16, and operations of each, 1 to 16; default 3, and 1 to 3 at random
//   A    of the distributions of the shares, above 0 and at most 1000; default 1
struct TimmConfig {
  std::string scheme;  // "rand", "augmix", or the name of AutoAugment's policy
  TimmMagnitude magnitude{};
  int layers = 2;
  double probability = 0.5;
  bool increasing = false;
  std::string set{};
  int width = 3;
  std::optional<int> depth{};
  double alpha = 1;
};

// Reads the argument `name`. Throws as Arguments::refuse(), with the section that is wrong.
TimmConfig timm_config(const Arguments& arguments, const char* name);

}  // namespace stoker
