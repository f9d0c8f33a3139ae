#include <cmath>

#include "decode/pixel_ops.h"
#include "pipeline/augment/stages.h"
#include "pipeline/random/symmetric_beta.h"

namespace stoker {
namespace {

StageActions make_mixup(const Arguments& arguments) {
  const double alpha = arguments.real("alpha");
  return {.draw = {}, .combine = [=](const RandomKey& key, std::span<const Size> pictures) {
            Combination mixup = overlaid(CombinationKind::blend, pictures);
            const double share = symmetric_beta(key, 0, alpha);
            mixup.own_share = static_cast<float>(std::floor(share * kMixParts + 0.5) / kMixParts);
            return mixup;
          }};
}

}  // namespace

const StageType kMixup{
    .name = "mixup",
    .help = "The mean of two samples' images, with the objects of both",
    .details =
        "Of detection (Zhang et al., \"Bag of Freebies\", 2019; the YOLO family). alpha: the\n"
        "share of each is drawn from Beta(alpha, alpha). The stages before give all images one\n"
        "size. For classes of whole images: mix.",
    .parameters = {{"alpha", ArgumentKind::real, "32", 1e-3, 1e3}, kProbability},
    .make = make_mixup,
    .partners = 1};

}  // namespace stoker
