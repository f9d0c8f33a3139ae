#include "pipeline/augment/policy_ops.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// torchvision's RandAugment (Cubuk et al. 2019, "RandAugment").

StageActions make_random_augment(const Arguments& arguments) {
  const int count = arguments.whole("num_ops");
  const int magnitude = arguments.whole("magnitude");
  const int bins = arguments.whole("num_magnitude_bins");
  if (magnitude >= bins) {
    arguments.refuse("magnitude", "less than num_magnitude_bins, " + std::to_string(bins));
  }
  const WarpOptions options = warp_options(arguments);
  return {[=](const StageKey& stage, Draws& draws) {
    for (uint32_t i = 0; i < static_cast<uint32_t>(count); ++i) {
      const PolicyOp op = kPolicyOps[stage.key.below(2 * i, std::size(kPolicyOps))];
      draw_policy_op(draws, stage.key, 2 * i + 1, kRandomAugmentLimits, op, magnitude, bins,
                     options);
    }
  }};
}

}  // namespace

const StageType kRandomAugment{
    .name = "random_augment",
    .help = "RandAugment: some operations of 14, all with one magnitude",
    .details = "torchvision's RandAugment.",
    .parameters = {{"num_ops", ArgumentKind::whole, "2", 0, 100},
                   {"magnitude", ArgumentKind::whole, "9", 0, 1000},
                   {"num_magnitude_bins", ArgumentKind::whole, "31", 1, 1001},
                   kPolicyInterpolation,
                   kFillParameter,
                   kProbability},
    .make = make_random_augment};

}  // namespace stoker
