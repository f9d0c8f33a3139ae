#include "pipeline/augment/policy_ops.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// torchvision's TrivialAugmentWide (Müller and Hutter 2021, "TrivialAugment").

StageActions make_trivial_augment(const Arguments& arguments) {
  const int bins = arguments.whole("num_magnitude_bins");
  const WarpOptions options = warp_options(arguments);
  return {[=](const StageKey& stage, Draws& draws) {
    const PolicyOp op = kPolicyOps[stage.key.below(0, std::size(kPolicyOps))];
    const auto bin = static_cast<int>(stage.key.below(1, bins));
    draw_policy_op(draws, stage.key, 2, kTrivialAugmentLimits, op, bin, bins, options);
  }};
}

}  // namespace

const StageType kTrivialAugment{
    .name = "trivial_augment_wide",
    .help = "TrivialAugment: one operation of 14 with a random magnitude",
    .details = "torchvision's TrivialAugmentWide.",
    .parameters = {{"num_magnitude_bins", ArgumentKind::whole, "31", 1, 1001},
                   kPolicyInterpolation,
                   kFillParameter,
                   kProbability},
    .make = make_trivial_augment};

}  // namespace stoker
