// The choices of timm's policies (timm 1.0, timm/data/auto_augment.py).
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

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

}  // namespace stoker
