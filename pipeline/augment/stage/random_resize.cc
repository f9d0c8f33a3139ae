#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_random_resize(const Arguments& arguments) {
  const int least = arguments.whole("min_size"), bound = arguments.whole("max_size");
  if (bound <= least) arguments.refuse("max_size", "more than min_size");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  return {[=](const StageKey& stage, Draws& draws) {
            const int short_side = least + static_cast<int>(stage.key.below(0, bound - least));
            add_resize(draws, by_short_side(draws.size(), short_side), filter);
          },
          no_one_size};
}

}  // namespace

const StageType kRandomResize{
    .name = "random_resize",
    .help = "Resizes to a random short side",
    .details = "torchvision's RandomResize: min_size or more, and less than max_size.",
    .parameters = {{"min_size", ArgumentKind::whole, nullptr, 1, kMaxSide},
                   {"max_size", ArgumentKind::whole, nullptr, 1, kMaxSide},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames}},
    .make = make_random_resize};

}  // namespace stoker
