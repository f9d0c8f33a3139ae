#include "decode/pixel_ops.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

const PixelKind kVerticalFlipStep{.name = "vertical_flip",
                                  .motion = Motion::vertical_flip,
                                  .change = [](const PixelStep&, MutableImageView image,
                                               PixelScratch&) { flip_vertical(image); }};

StageActions make_vertical_flip(const Arguments& arguments) {
  const double p = arguments.real("p");
  return {[=](const StageKey& stage, Draws& draws) {
    if (stage.key.uniform(0) >= 1 - p) draws.add(kVerticalFlipStep);
  }};
}

}  // namespace

const StageType kVerticalFlip{.name = "vertical_flip",
                              .help = "Mirrors top to bottom",
                              .parameters = {{"p", ArgumentKind::real, "0.5", 0, 1}},
                              .make = make_vertical_flip,
                              .draws_probability = true};

}  // namespace stoker
