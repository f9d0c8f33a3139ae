#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_invert(const Arguments&) {
  return {[](const StageKey&, Draws& draws) { draws.add(kInvertStep); }};
}

}  // namespace

const StageType kInvert{.name = "invert",
                        .help = "Every byte v becomes 255 - v",
                        .parameters = {kProbability},
                        .make = make_invert};

}  // namespace stoker
