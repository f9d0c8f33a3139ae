#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_clamp_boxes(const Arguments&) {
  return {[](const StageKey&, Draws& draws) { draws.add(kClampBoxesStep); }};
}

}  // namespace

const StageType kClampBoxes{
    .name = "clamp_boxes",
    .help = "Boxes are cut off at the sides of the image",
    .details = "torchvision's ClampBoundingBoxes. Crops and paddings do so by themselves.",
    .parameters = {},
    .make = make_clamp_boxes};

}  // namespace stoker
