#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_sanitize_boxes(const Arguments& arguments) {
  const double min_size = arguments.real("min_size"), min_area = arguments.real("min_area");
  return {[=](const StageKey&, Draws& draws) {
    draws.add(kSanitizeBoxesStep, {min_size, min_area});
  }};
}

}  // namespace

const StageType kSanitizeBoxes{
    .name = "sanitize_boxes",
    .help = "Drops objects whose box is too small, or reaches out of the image",
    .details =
        "torchvision's SanitizeBoundingBoxes: both sides have at least min_size pixels, and\n"
        "the box min_area. Labels, masks and keypoints go with their object.",
    .parameters = {{"min_size", ArgumentKind::real, "1", 1, 1e9},
                   {"min_area", ArgumentKind::real, "1", 1, 1e9}},
    .make = make_sanitize_boxes};

}  // namespace stoker
