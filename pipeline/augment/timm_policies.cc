#include "pipeline/augment/timm_policies.h"

namespace stoker {
namespace {

using Op = TimmOp;

// The sets of timm's RandAugment, in its order, with their weights.
constexpr Op kPlainOps[] = {Op::auto_contrast, Op::equalize,    Op::invert,       Op::rotate,
                            Op::posterize,     Op::solarize,    Op::solarize_add, Op::color,
                            Op::contrast,      Op::brightness,  Op::sharpness,    Op::shear_x,
                            Op::shear_y,       Op::translate_x, Op::translate_y};
constexpr Op kIncreasing[] = {Op::auto_contrast,
                              Op::equalize,
                              Op::invert,
                              Op::rotate,
                              Op::posterize_increasing,
                              Op::solarize_increasing,
                              Op::solarize_add,
                              Op::color_increasing,
                              Op::contrast_increasing,
                              Op::brightness_increasing,
                              Op::sharpness_increasing,
                              Op::shear_x,
                              Op::shear_y,
                              Op::translate_x,
                              Op::translate_y};
constexpr Op kThree[] = {Op::solarize_increasing, Op::desaturate, Op::gaussian_blur};
constexpr Op kWeightedThree[] = {Op::solarize_increasing,
                                 Op::desaturate,
                                 Op::gaussian_blur,
                                 Op::rotate,
                                 Op::shear_x,
                                 Op::shear_y,
                                 Op::posterize_increasing,
                                 Op::auto_contrast,
                                 Op::color_increasing,
                                 Op::sharpness_increasing,
                                 Op::contrast_increasing,
                                 Op::brightness_increasing,
                                 Op::equalize,
                                 Op::invert};
constexpr Op kWeighted[] = {Op::rotate,
                            Op::shear_x,
                            Op::shear_y,
                            Op::translate_x,
                            Op::translate_y,
                            Op::color_increasing,
                            Op::sharpness_increasing,
                            Op::auto_contrast,
                            Op::solarize_increasing,
                            Op::solarize_add,
                            Op::contrast_increasing,
                            Op::brightness_increasing,
                            Op::equalize,
                            Op::posterize_increasing,
                            Op::invert};
constexpr Op kMixOps[] = {Op::auto_contrast,
                          Op::color_increasing,
                          Op::contrast_increasing,
                          Op::brightness_increasing,
                          Op::sharpness_increasing,
                          Op::equalize,
                          Op::rotate,
                          Op::posterize_increasing,
                          Op::solarize_increasing,
                          Op::shear_x,
                          Op::shear_y,
                          Op::translate_x,
                          Op::translate_y};
constexpr double kThreeWeights[] = {6, 6, 6, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1};
constexpr double kOpWeights[] = {3,    2,    2,    1,    1,    0.25, 0.25, 0.25,
                                 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05};

// The policy of EfficientNet's training on TPUs.
constexpr TimmPair kV0[] = {
    {{{Op::equalize, 0.8, 1}, {Op::shear_y, 0.8, 4}}},
    {{{Op::color, 0.4, 9}, {Op::equalize, 0.6, 3}}},
    {{{Op::color, 0.4, 1}, {Op::rotate, 0.6, 8}}},
    {{{Op::solarize, 0.8, 3}, {Op::equalize, 0.4, 7}}},
    {{{Op::solarize, 0.4, 2}, {Op::solarize, 0.6, 2}}},
    {{{Op::color, 0.2, 0}, {Op::equalize, 0.8, 8}}},
    {{{Op::equalize, 0.4, 8}, {Op::solarize_add, 0.8, 3}}},
    {{{Op::shear_x, 0.2, 9}, {Op::rotate, 0.6, 8}}},
    {{{Op::color, 0.6, 1}, {Op::equalize, 1, 2}}},
    {{{Op::invert, 0.4, 9}, {Op::rotate, 0.6, 0}}},
    {{{Op::equalize, 1, 9}, {Op::shear_y, 0.6, 3}}},
    {{{Op::color, 0.4, 7}, {Op::equalize, 0.6, 0}}},
    {{{Op::posterize, 0.4, 6}, {Op::auto_contrast, 0.4, 7}}},
    {{{Op::solarize, 0.6, 8}, {Op::color, 0.6, 9}}},
    {{{Op::solarize, 0.2, 4}, {Op::rotate, 0.8, 9}}},
    {{{Op::rotate, 1, 7}, {Op::translate_y, 0.8, 9}}},
    {{{Op::shear_x, 0, 0}, {Op::solarize, 0.8, 4}}},
    {{{Op::shear_y, 0.8, 0}, {Op::color, 0.6, 4}}},
    {{{Op::color, 1, 0}, {Op::rotate, 0.6, 2}}},
    {{{Op::equalize, 0.8, 4}, {Op::equalize, 0, 8}}},
    {{{Op::equalize, 1, 4}, {Op::auto_contrast, 0.6, 2}}},
    {{{Op::shear_y, 0.4, 7}, {Op::solarize_add, 0.6, 7}}},
    {{{Op::posterize, 0.8, 2}, {Op::solarize, 0.6, 10}}},
    {{{Op::solarize, 0.6, 8}, {Op::equalize, 0.6, 1}}},
    {{{Op::color, 0.8, 6}, {Op::rotate, 0.4, 5}}},
};
// ImageNet's policy (Cubuk et al. 2018, "AutoAugment", table 9).
constexpr TimmPair kOriginal[] = {
    {{{Op::posterize_original, 0.4, 8}, {Op::rotate, 0.6, 9}}},
    {{{Op::solarize, 0.6, 5}, {Op::auto_contrast, 0.6, 5}}},
    {{{Op::equalize, 0.8, 8}, {Op::equalize, 0.6, 3}}},
    {{{Op::posterize_original, 0.6, 7}, {Op::posterize_original, 0.6, 6}}},
    {{{Op::equalize, 0.4, 7}, {Op::solarize, 0.2, 4}}},
    {{{Op::equalize, 0.4, 4}, {Op::rotate, 0.8, 8}}},
    {{{Op::solarize, 0.6, 3}, {Op::equalize, 0.6, 7}}},
    {{{Op::posterize_original, 0.8, 5}, {Op::equalize, 1, 2}}},
    {{{Op::rotate, 0.2, 3}, {Op::solarize, 0.6, 8}}},
    {{{Op::equalize, 0.6, 8}, {Op::posterize_original, 0.4, 6}}},
    {{{Op::rotate, 0.8, 8}, {Op::color, 0.4, 0}}},
    {{{Op::rotate, 0.4, 9}, {Op::equalize, 0.6, 2}}},
    {{{Op::equalize, 0, 7}, {Op::equalize, 0.8, 8}}},
    {{{Op::invert, 0.6, 4}, {Op::equalize, 1, 8}}},
    {{{Op::color, 0.6, 4}, {Op::contrast, 1, 8}}},
    {{{Op::rotate, 0.8, 8}, {Op::color, 1, 2}}},
    {{{Op::color, 0.8, 8}, {Op::solarize, 0.8, 7}}},
    {{{Op::sharpness, 0.4, 7}, {Op::invert, 0.6, 8}}},
    {{{Op::shear_x, 0.6, 5}, {Op::equalize, 1, 9}}},
    {{{Op::color, 0.4, 0}, {Op::equalize, 0.6, 3}}},
    {{{Op::equalize, 0.4, 7}, {Op::solarize, 0.2, 4}}},
    {{{Op::solarize, 0.6, 5}, {Op::auto_contrast, 0.6, 5}}},
    {{{Op::invert, 0.6, 4}, {Op::equalize, 1, 8}}},
    {{{Op::color, 0.6, 4}, {Op::contrast, 1, 8}}},
    {{{Op::equalize, 0.8, 8}, {Op::equalize, 0.6, 3}}},
};
// 3-Augment (Touvron et al. 2022, "DeiT III"): one operation, and none behind it.
constexpr TimmPair kThreeAugment[] = {
    {{{Op::solarize, 1, 5}, {Op::auto_contrast, 0, 0}}},
    {{{Op::desaturate, 1, 10}, {Op::auto_contrast, 0, 0}}},
    {{{Op::gaussian_blur_random, 1, 10}, {Op::auto_contrast, 0, 0}}},
};

}  // namespace

TimmSet timm_set(const std::string& name, bool increasing) {
  if (name == "weights") return {kWeighted, kOpWeights};
  if (name == "3aw") return {kWeightedThree, kThreeWeights};
  if (name == "3a") return {kThree, {}};
  return {increasing ? kIncreasing : kPlainOps, {}};
}

std::span<const TimmOp> timm_mix_operations() { return kMixOps; }

std::vector<TimmPair> timm_policy(const std::string& name) {
  std::span<const TimmPair> pairs = kThreeAugment;
  if (name.starts_with("v0")) pairs = kV0;
  if (name.starts_with("original")) pairs = kOriginal;
  std::vector<TimmPair> policy(pairs.begin(), pairs.end());
  if (!name.ends_with("r")) return policy;
  for (TimmPair& pair : policy) {
    for (TimmChoice& choice : pair) {
      const bool posterizes = choice.op == Op::posterize || choice.op == Op::posterize_original;
      if (posterizes) choice.op = Op::posterize_increasing;
    }
  }
  return policy;
}

}  // namespace stoker
