#include "pipeline/augment/policy_ops.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

struct Choice {
  PolicyOp op;
  double probability;
  int bin = 0;
};
using Pair = std::array<Choice, 2>;
using Op = PolicyOp;

constexpr int kBins = 10;

// The learned policies (Cubuk et al. 2018, "AutoAugment", tables 7 to 9), with the probabilities
// and magnitudes that torchvision uses.
constexpr Pair kImageNet[] = {
    {{{Op::posterize, 0.4, 8}, {Op::rotate, 0.6, 9}}},
    {{{Op::solarize, 0.6, 5}, {Op::auto_contrast, 0.6}}},
    {{{Op::equalize, 0.8}, {Op::equalize, 0.6}}},
    {{{Op::posterize, 0.6, 7}, {Op::posterize, 0.6, 6}}},
    {{{Op::equalize, 0.4}, {Op::solarize, 0.2, 4}}},
    {{{Op::equalize, 0.4}, {Op::rotate, 0.8, 8}}},
    {{{Op::solarize, 0.6, 3}, {Op::equalize, 0.6}}},
    {{{Op::posterize, 0.8, 5}, {Op::equalize, 1}}},
    {{{Op::rotate, 0.2, 3}, {Op::solarize, 0.6, 8}}},
    {{{Op::equalize, 0.6}, {Op::posterize, 0.4, 6}}},
    {{{Op::rotate, 0.8, 8}, {Op::color, 0.4, 0}}},
    {{{Op::rotate, 0.4, 9}, {Op::equalize, 0.6}}},
    {{{Op::equalize, 0}, {Op::equalize, 0.8}}},
    {{{Op::invert, 0.6}, {Op::equalize, 1}}},
    {{{Op::color, 0.6, 4}, {Op::contrast, 1, 8}}},
    {{{Op::rotate, 0.8, 8}, {Op::color, 1, 2}}},
    {{{Op::color, 0.8, 8}, {Op::solarize, 0.8, 7}}},
    {{{Op::sharpness, 0.4, 7}, {Op::invert, 0.6}}},
    {{{Op::shear_x, 0.6, 5}, {Op::equalize, 1}}},
    {{{Op::color, 0.4, 0}, {Op::equalize, 0.6}}},
    {{{Op::equalize, 0.4}, {Op::solarize, 0.2, 4}}},
    {{{Op::solarize, 0.6, 5}, {Op::auto_contrast, 0.6}}},
    {{{Op::invert, 0.6}, {Op::equalize, 1}}},
    {{{Op::color, 0.6, 4}, {Op::contrast, 1, 8}}},
    {{{Op::equalize, 0.8}, {Op::equalize, 0.6}}},
};
constexpr Pair kCifar10[] = {
    {{{Op::invert, 0.1}, {Op::contrast, 0.2, 6}}},
    {{{Op::rotate, 0.7, 2}, {Op::translate_x, 0.3, 9}}},
    {{{Op::sharpness, 0.8, 1}, {Op::sharpness, 0.9, 3}}},
    {{{Op::shear_y, 0.5, 8}, {Op::translate_y, 0.7, 9}}},
    {{{Op::auto_contrast, 0.5}, {Op::equalize, 0.9}}},
    {{{Op::shear_y, 0.2, 7}, {Op::posterize, 0.3, 7}}},
    {{{Op::color, 0.4, 3}, {Op::brightness, 0.6, 7}}},
    {{{Op::sharpness, 0.3, 9}, {Op::brightness, 0.7, 9}}},
    {{{Op::equalize, 0.6}, {Op::equalize, 0.5}}},
    {{{Op::contrast, 0.6, 7}, {Op::sharpness, 0.6, 5}}},
    {{{Op::color, 0.7, 7}, {Op::translate_x, 0.5, 8}}},
    {{{Op::equalize, 0.3}, {Op::auto_contrast, 0.4}}},
    {{{Op::translate_y, 0.4, 3}, {Op::sharpness, 0.2, 6}}},
    {{{Op::brightness, 0.9, 6}, {Op::color, 0.2, 8}}},
    {{{Op::solarize, 0.5, 2}, {Op::invert, 0}}},
    {{{Op::equalize, 0.2}, {Op::auto_contrast, 0.6}}},
    {{{Op::equalize, 0.2}, {Op::equalize, 0.6}}},
    {{{Op::color, 0.9, 9}, {Op::equalize, 0.6}}},
    {{{Op::auto_contrast, 0.8}, {Op::solarize, 0.2, 8}}},
    {{{Op::brightness, 0.1, 3}, {Op::color, 0.7, 0}}},
    {{{Op::solarize, 0.4, 5}, {Op::auto_contrast, 0.9}}},
    {{{Op::translate_y, 0.9, 9}, {Op::translate_y, 0.7, 9}}},
    {{{Op::auto_contrast, 0.9}, {Op::solarize, 0.8, 3}}},
    {{{Op::equalize, 0.8}, {Op::invert, 0.1}}},
    {{{Op::translate_y, 0.7, 9}, {Op::auto_contrast, 0.9}}},
};
constexpr Pair kSvhn[] = {
    {{{Op::shear_x, 0.9, 4}, {Op::invert, 0.2}}},
    {{{Op::shear_y, 0.9, 8}, {Op::invert, 0.7}}},
    {{{Op::equalize, 0.6}, {Op::solarize, 0.6, 6}}},
    {{{Op::invert, 0.9}, {Op::equalize, 0.6}}},
    {{{Op::equalize, 0.6}, {Op::rotate, 0.9, 3}}},
    {{{Op::shear_x, 0.9, 4}, {Op::auto_contrast, 0.8}}},
    {{{Op::shear_y, 0.9, 8}, {Op::invert, 0.4}}},
    {{{Op::shear_y, 0.9, 5}, {Op::solarize, 0.2, 6}}},
    {{{Op::invert, 0.9}, {Op::auto_contrast, 0.8}}},
    {{{Op::equalize, 0.6}, {Op::rotate, 0.9, 3}}},
    {{{Op::shear_x, 0.9, 4}, {Op::solarize, 0.3, 3}}},
    {{{Op::shear_y, 0.8, 8}, {Op::invert, 0.7}}},
    {{{Op::equalize, 0.9}, {Op::translate_y, 0.6, 6}}},
    {{{Op::invert, 0.9}, {Op::equalize, 0.6}}},
    {{{Op::contrast, 0.3, 3}, {Op::rotate, 0.8, 4}}},
    {{{Op::invert, 0.8}, {Op::translate_y, 0, 2}}},
    {{{Op::shear_y, 0.7, 6}, {Op::solarize, 0.4, 8}}},
    {{{Op::invert, 0.6}, {Op::rotate, 0.8, 4}}},
    {{{Op::shear_y, 0.3, 7}, {Op::translate_x, 0.9, 3}}},
    {{{Op::shear_x, 0.1, 6}, {Op::invert, 0.6}}},
    {{{Op::solarize, 0.7, 2}, {Op::translate_y, 0.6, 7}}},
    {{{Op::shear_y, 0.8, 4}, {Op::invert, 0.8}}},
    {{{Op::shear_x, 0.7, 9}, {Op::translate_y, 0.8, 3}}},
    {{{Op::shear_y, 0.8, 5}, {Op::auto_contrast, 0.7}}},
    {{{Op::shear_x, 0.7, 2}, {Op::invert, 0.1}}},
};

constexpr const char* kNames[] = {"imagenet", "cifar10", "svhn"};
constexpr std::span<const Pair> kPolicies[] = {kImageNet, kCifar10, kSvhn};

StageActions make(const Arguments& arguments) {
  const std::span<const Pair> policy = kPolicies[arguments.choice("policy")];
  const WarpOptions options = warp_options(arguments);
  return {[=](const StageKey& stage, Draws& draws) {
    const auto chosen =
        static_cast<size_t>(stage.key.below(0, static_cast<int64_t>(policy.size())));
    uint32_t draw = 1;
    for (const Choice& choice : policy[chosen]) {
      if (stage.key.uniform(draw) < choice.probability) {
        draw_policy_op(draws, stage.key, draw + 1, kRandomAugmentLimits, choice.op, choice.bin,
                       kBins, options);
      }
      draw += 2;
    }
  }};
}

}  // namespace

const StageType kAutoAugment{
    .name = "auto_augment",
    .help = "AutoAugment: one of 25 learned pairs of operations",
    .parameters = {{"policy", ArgumentKind::choice, "imagenet", 0, 0, kNames},
                   kPolicyInterpolation,
                   kFillParameter,
                   kProbability},
    .make = make};

}  // namespace stoker
