#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_equalize(const Arguments&) {
  return {[](const StageKey&, Draws& draws) { draws.add(kEqualizeStep); }};
}

}  // namespace

const StageType kEqualize{.name = "equalize",
                          .help = "The histogram of each channel made even",
                          .details = "Pillow's ImageOps.equalize.",
                          .parameters = {kProbability},
                          .make = make_equalize};

}  // namespace stoker
