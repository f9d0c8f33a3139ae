#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_grayscale(const Arguments&) {
  return {[](const StageKey&, Draws& draws) { draws.add(kGrayscaleStep); }};
}

}  // namespace

const StageType kGrayscale{.name = "grayscale",
                           .help = "The luma in all three channels",
                           .parameters = {kProbability},
                           .make = make_grayscale};

}  // namespace stoker
