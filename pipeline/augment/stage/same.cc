#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_same(const Arguments& arguments) {
  const SharedStages stages = arguments.stages("stages")[0];
  return {[=](const StageKey& key, Draws& draws) { draws.draw_shared(*stages, key.salt); },
          [=](std::optional<Size> before, Size output) { return stages->size(before, output); }};
}

}  // namespace

const StageType kSame{
    .name = "same",
    .help = "Stages that draw the same numbers for all pictures of a sample",
    .details =
        "In the lists of pictures(...), so that an image and its control map are cropped and\n"
        "mirrored alike. All lists that have same(...) must have the same ones, in the same "
        "order,\n"
        "and the pictures must have one size there; one that has not makes a bad sample:\n"
        "  pictures(same(random_crop(512) | flip) | color_jitter(0.2),\n"
        "           control=same(random_crop(512) | flip))",
    .parameters = {{"stages", ArgumentKind::stages, nullptr, 1, 1}},
    .make = make_same};

}  // namespace stoker
