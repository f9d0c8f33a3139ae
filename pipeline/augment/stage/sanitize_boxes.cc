#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_sanitize_boxes(const Arguments& arguments) {
  const double min_size = arguments.real("min_size"), min_area = arguments.real("min_area");
  const double min_visibility = arguments.real("min_visibility");
  return {[=](const StageKey&, Draws& draws) {
    draws.add(kSanitizeBoxesStep, {min_size, min_area, min_visibility});
  }};
}

}  // namespace

const StageType kSanitizeBoxes{
    .name = "sanitize_boxes",
    .help = "Drops objects whose box is too small, or reaches out of the image",
    .details =
        "torchvision's SanitizeBoundingBoxes: both sides have at least min_size pixels, and\n"
        "the box min_area. Labels, masks and keypoints go with their object. min_visibility is\n"
        "albumentations': the least share of the box's area that crops, rotations and so on have\n"
        "left of it, all together; 0: any.",
    .parameters = {{"min_size", ArgumentKind::real, "1", 1, 1e9},
                   {"min_area", ArgumentKind::real, "1", 1, 1e9},
                   {"min_visibility", ArgumentKind::real, "0", 0, 1}},
    .make = make_sanitize_boxes};

}  // namespace stoker
