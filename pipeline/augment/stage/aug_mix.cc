#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/policy_ops.h"
#include "pipeline/augment/stage/shares.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

constexpr int kAugMixBins = 10;
constexpr int kMaxWidth = 16, kMaxChainDepth = 16;
// The numbers of a chain's draws, and of the weights'.
constexpr uint32_t kChainDraws = 64, kAugMixWeights = 0x10000;

// torchvision's AugMix (Hendrycks et al. 2020): translations are up to a third, posterize keeps 4
// bits to none.
constexpr PolicyOp kAugMixOps[] = {
    PolicyOp::shear_x,  PolicyOp::shear_y,    PolicyOp::translate_x, PolicyOp::translate_y,
    PolicyOp::rotate,   PolicyOp::posterize,  PolicyOp::solarize,    PolicyOp::auto_contrast,
    PolicyOp::equalize, PolicyOp::brightness, PolicyOp::color,       PolicyOp::contrast,
    PolicyOp::sharpness};
constexpr int kWithoutColours = 9;  // the first of them

struct AugMix {
  int severity, width, depth;
  double alpha;
  int ops;
};

void draw_chain(const AugMix& mix, const StageKey& stage, uint32_t first,
                const WarpOptions& options, Draws& draws) {
  const RandomKey& key = stage.key;
  const int depth = mix.depth > 0 ? mix.depth : 1 + static_cast<int>(key.below(first, 3));
  for (int i = 0; i < depth; ++i) {
    const uint32_t draw = first + 1 + 3 * static_cast<uint32_t>(i);
    const PolicyOp op = kAugMixOps[key.below(draw, mix.ops)];
    const auto bin = static_cast<int>(key.below(draw + 1, mix.severity));
    draw_policy_op(draws, key, draw + 2, kAugMixLimits, op, bin, kAugMixBins, options);
  }
}

void draw_aug_mix(const AugMix& mix, const StageKey& stage, const WarpOptions& options,
                  Draws& draws) {
  std::array<double, 2> own;
  std::array<double, kMaxWidth> shares;
  const auto chains = std::span(shares).first(static_cast<size_t>(mix.width));
  draw_shares(stage.key, kAugMixWeights, mix.alpha, own);
  draw_shares(stage.key, 2 * kAugMixWeights, mix.alpha, chains);
  draws.add(kBlendBeginStep, {own[0]});
  for (int i = 0; i < mix.width; ++i) {
    draw_chain(mix, stage, kChainDraws * static_cast<uint32_t>(i), options, draws);
    draws.add(kBlendStep, {own[1] * chains[static_cast<size_t>(i)]});
  }
  draws.add(kBlendEndStep);
}

StageActions make_aug_mix(const Arguments& arguments) {
  const AugMix mix{
      arguments.whole("severity"), arguments.whole("mixture_width"), arguments.whole("chain_depth"),
      arguments.real("alpha"),
      arguments.flag("all_ops") ? static_cast<int>(std::size(kAugMixOps)) : kWithoutColours};
  if (!(mix.alpha > 0)) arguments.refuse("alpha", "above 0");
  const WarpOptions options = warp_options(arguments);
  return {[=](const StageKey& stage, Draws& draws) { draw_aug_mix(mix, stage, options, draws); }};
}

}  // namespace

const StageType kAugMix{
    .name = "aug_mix",
    .help = "AugMix: a blend of the image with chains of operations on it",
    .details = "torchvision runs these on tensors, stoker as Pillow does.",
    .parameters = {{"severity", ArgumentKind::whole, "3", 1, 10},
                   {"mixture_width", ArgumentKind::whole, "3", 1, kMaxWidth},
                   {"chain_depth", ArgumentKind::whole, "-1", -1, kMaxChainDepth},
                   {"alpha", ArgumentKind::real, "1", 0, 1e3},
                   {"all_ops", ArgumentKind::flag, "True"},
                   kBilinearParameter,
                   kFillParameter,
                   kProbability},
    .make = make_aug_mix};

}  // namespace stoker
