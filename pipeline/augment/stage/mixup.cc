#include <cmath>

#include "decode/pixel_ops.h"
#include "pipeline/augment/stages.h"
#include "pipeline/random/symmetric_beta.h"

namespace stoker {
namespace {

StageActions make_mixup(const Arguments& arguments) {
  const double alpha = arguments.real("alpha");
  const std::vector<SharedStages>& lists = arguments.stages("partner");
  return {.draw = {},
          .combine =
              [=](const RandomKey& key, std::span<const Size> pictures) {
                Combination mixup = overlaid(CombinationKind::blend, pictures);
                const double share = std::floor(symmetric_beta(key, 0, alpha) * kMixParts + 0.5);
                mixup.own_share = static_cast<float>(share / kMixParts);
                return mixup;
              },
          .partner = lists.empty() ? nullptr : lists[0]};
}

}  // namespace

const StageType kMixup{
    .name = "mixup",
    .help = "The mean of two samples' images, with the objects of both",
    .details =
        "Of detection (Zhang et al., \"Bag of Freebies\", 2019; the YOLO family). partner: what\n"
        "is done to the other sample, in place of the stages before, as in\n"
        "mosaic(640) | ... | mixup(letterbox(640)). alpha: the share of each is drawn from\n"
        "Beta(alpha, alpha). All images have one size. For classes of whole images: mix.",
    .parameters = {{"partner", ArgumentKind::stages, "", 0, 1},
                   {"alpha", ArgumentKind::real, "32", 1e-3, 1e3},
                   kProbability},
    .make = make_mixup,
    .partners = 1};

}  // namespace stoker
