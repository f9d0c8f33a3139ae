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

constexpr int kAutoAugmentBins = 10;

// The learned policies (Cubuk et al. 2018, "AutoAugment", tables 7 to 9), with the probabilities
// and magnitudes that torchvision uses.
constexpr Pair kImageNet[] = {
    {{{PolicyOp::posterize, 0.4, 8}, {PolicyOp::rotate, 0.6, 9}}},
    {{{PolicyOp::solarize, 0.6, 5}, {PolicyOp::auto_contrast, 0.6}}},
    {{{PolicyOp::equalize, 0.8}, {PolicyOp::equalize, 0.6}}},
    {{{PolicyOp::posterize, 0.6, 7}, {PolicyOp::posterize, 0.6, 6}}},
    {{{PolicyOp::equalize, 0.4}, {PolicyOp::solarize, 0.2, 4}}},
    {{{PolicyOp::equalize, 0.4}, {PolicyOp::rotate, 0.8, 8}}},
    {{{PolicyOp::solarize, 0.6, 3}, {PolicyOp::equalize, 0.6}}},
    {{{PolicyOp::posterize, 0.8, 5}, {PolicyOp::equalize, 1}}},
    {{{PolicyOp::rotate, 0.2, 3}, {PolicyOp::solarize, 0.6, 8}}},
    {{{PolicyOp::equalize, 0.6}, {PolicyOp::posterize, 0.4, 6}}},
    {{{PolicyOp::rotate, 0.8, 8}, {PolicyOp::color, 0.4, 0}}},
    {{{PolicyOp::rotate, 0.4, 9}, {PolicyOp::equalize, 0.6}}},
    {{{PolicyOp::equalize, 0}, {PolicyOp::equalize, 0.8}}},
    {{{PolicyOp::invert, 0.6}, {PolicyOp::equalize, 1}}},
    {{{PolicyOp::color, 0.6, 4}, {PolicyOp::contrast, 1, 8}}},
    {{{PolicyOp::rotate, 0.8, 8}, {PolicyOp::color, 1, 2}}},
    {{{PolicyOp::color, 0.8, 8}, {PolicyOp::solarize, 0.8, 7}}},
    {{{PolicyOp::sharpness, 0.4, 7}, {PolicyOp::invert, 0.6}}},
    {{{PolicyOp::shear_x, 0.6, 5}, {PolicyOp::equalize, 1}}},
    {{{PolicyOp::color, 0.4, 0}, {PolicyOp::equalize, 0.6}}},
    {{{PolicyOp::equalize, 0.4}, {PolicyOp::solarize, 0.2, 4}}},
    {{{PolicyOp::solarize, 0.6, 5}, {PolicyOp::auto_contrast, 0.6}}},
    {{{PolicyOp::invert, 0.6}, {PolicyOp::equalize, 1}}},
    {{{PolicyOp::color, 0.6, 4}, {PolicyOp::contrast, 1, 8}}},
    {{{PolicyOp::equalize, 0.8}, {PolicyOp::equalize, 0.6}}},
};
constexpr Pair kCifar10[] = {
    {{{PolicyOp::invert, 0.1}, {PolicyOp::contrast, 0.2, 6}}},
    {{{PolicyOp::rotate, 0.7, 2}, {PolicyOp::translate_x, 0.3, 9}}},
    {{{PolicyOp::sharpness, 0.8, 1}, {PolicyOp::sharpness, 0.9, 3}}},
    {{{PolicyOp::shear_y, 0.5, 8}, {PolicyOp::translate_y, 0.7, 9}}},
    {{{PolicyOp::auto_contrast, 0.5}, {PolicyOp::equalize, 0.9}}},
    {{{PolicyOp::shear_y, 0.2, 7}, {PolicyOp::posterize, 0.3, 7}}},
    {{{PolicyOp::color, 0.4, 3}, {PolicyOp::brightness, 0.6, 7}}},
    {{{PolicyOp::sharpness, 0.3, 9}, {PolicyOp::brightness, 0.7, 9}}},
    {{{PolicyOp::equalize, 0.6}, {PolicyOp::equalize, 0.5}}},
    {{{PolicyOp::contrast, 0.6, 7}, {PolicyOp::sharpness, 0.6, 5}}},
    {{{PolicyOp::color, 0.7, 7}, {PolicyOp::translate_x, 0.5, 8}}},
    {{{PolicyOp::equalize, 0.3}, {PolicyOp::auto_contrast, 0.4}}},
    {{{PolicyOp::translate_y, 0.4, 3}, {PolicyOp::sharpness, 0.2, 6}}},
    {{{PolicyOp::brightness, 0.9, 6}, {PolicyOp::color, 0.2, 8}}},
    {{{PolicyOp::solarize, 0.5, 2}, {PolicyOp::invert, 0}}},
    {{{PolicyOp::equalize, 0.2}, {PolicyOp::auto_contrast, 0.6}}},
    {{{PolicyOp::equalize, 0.2}, {PolicyOp::equalize, 0.6}}},
    {{{PolicyOp::color, 0.9, 9}, {PolicyOp::equalize, 0.6}}},
    {{{PolicyOp::auto_contrast, 0.8}, {PolicyOp::solarize, 0.2, 8}}},
    {{{PolicyOp::brightness, 0.1, 3}, {PolicyOp::color, 0.7, 0}}},
    {{{PolicyOp::solarize, 0.4, 5}, {PolicyOp::auto_contrast, 0.9}}},
    {{{PolicyOp::translate_y, 0.9, 9}, {PolicyOp::translate_y, 0.7, 9}}},
    {{{PolicyOp::auto_contrast, 0.9}, {PolicyOp::solarize, 0.8, 3}}},
    {{{PolicyOp::equalize, 0.8}, {PolicyOp::invert, 0.1}}},
    {{{PolicyOp::translate_y, 0.7, 9}, {PolicyOp::auto_contrast, 0.9}}},
};
constexpr Pair kSvhn[] = {
    {{{PolicyOp::shear_x, 0.9, 4}, {PolicyOp::invert, 0.2}}},
    {{{PolicyOp::shear_y, 0.9, 8}, {PolicyOp::invert, 0.7}}},
    {{{PolicyOp::equalize, 0.6}, {PolicyOp::solarize, 0.6, 6}}},
    {{{PolicyOp::invert, 0.9}, {PolicyOp::equalize, 0.6}}},
    {{{PolicyOp::equalize, 0.6}, {PolicyOp::rotate, 0.9, 3}}},
    {{{PolicyOp::shear_x, 0.9, 4}, {PolicyOp::auto_contrast, 0.8}}},
    {{{PolicyOp::shear_y, 0.9, 8}, {PolicyOp::invert, 0.4}}},
    {{{PolicyOp::shear_y, 0.9, 5}, {PolicyOp::solarize, 0.2, 6}}},
    {{{PolicyOp::invert, 0.9}, {PolicyOp::auto_contrast, 0.8}}},
    {{{PolicyOp::equalize, 0.6}, {PolicyOp::rotate, 0.9, 3}}},
    {{{PolicyOp::shear_x, 0.9, 4}, {PolicyOp::solarize, 0.3, 3}}},
    {{{PolicyOp::shear_y, 0.8, 8}, {PolicyOp::invert, 0.7}}},
    {{{PolicyOp::equalize, 0.9}, {PolicyOp::translate_y, 0.6, 6}}},
    {{{PolicyOp::invert, 0.9}, {PolicyOp::equalize, 0.6}}},
    {{{PolicyOp::contrast, 0.3, 3}, {PolicyOp::rotate, 0.8, 4}}},
    {{{PolicyOp::invert, 0.8}, {PolicyOp::translate_y, 0, 2}}},
    {{{PolicyOp::shear_y, 0.7, 6}, {PolicyOp::solarize, 0.4, 8}}},
    {{{PolicyOp::invert, 0.6}, {PolicyOp::rotate, 0.8, 4}}},
    {{{PolicyOp::shear_y, 0.3, 7}, {PolicyOp::translate_x, 0.9, 3}}},
    {{{PolicyOp::shear_x, 0.1, 6}, {PolicyOp::invert, 0.6}}},
    {{{PolicyOp::solarize, 0.7, 2}, {PolicyOp::translate_y, 0.6, 7}}},
    {{{PolicyOp::shear_y, 0.8, 4}, {PolicyOp::invert, 0.8}}},
    {{{PolicyOp::shear_x, 0.7, 9}, {PolicyOp::translate_y, 0.8, 3}}},
    {{{PolicyOp::shear_y, 0.8, 5}, {PolicyOp::auto_contrast, 0.7}}},
    {{{PolicyOp::shear_x, 0.7, 2}, {PolicyOp::invert, 0.1}}},
};

constexpr const char* kPolicyNames[] = {"imagenet", "cifar10", "svhn"};
constexpr std::span<const Pair> kPolicies[] = {kImageNet, kCifar10, kSvhn};

StageActions make_auto_augment(const Arguments& arguments) {
  const std::span<const Pair> policy = kPolicies[arguments.choice("policy")];
  const WarpOptions options = warp_options(arguments);
  return {[=](const StageKey& stage, Draws& draws) {
    const auto chosen =
        static_cast<size_t>(stage.key.below(0, static_cast<int64_t>(policy.size())));
    uint32_t draw = 1;
    for (const Choice& choice : policy[chosen]) {
      if (stage.key.uniform(draw) < choice.probability) {
        draw_policy_op(draws, stage.key, draw + 1, kRandomAugmentLimits, choice.op, choice.bin,
                       kAutoAugmentBins, options);
      }
      draw += 2;
    }
  }};
}

}  // namespace

const StageType kAutoAugment{
    .name = "auto_augment",
    .help = "AutoAugment: one of 25 learned pairs of operations",
    .details = "torchvision's AutoAugment.",
    .parameters = {{"policy", ArgumentKind::choice, "imagenet", 0, 0, kPolicyNames},
                   kPolicyInterpolation,
                   kFillParameter,
                   kProbability},
    .make = make_auto_augment};

}  // namespace stoker
