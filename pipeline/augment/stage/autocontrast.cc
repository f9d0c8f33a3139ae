#include "pipeline/augment/colour_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make(const Arguments&) {
  return {[](const StageKey&, Draws& draws) { draws.add(kAutocontrastStep); }};
}

}  // namespace

const StageType kAutocontrast{.name = "autocontrast",
                              .help = "Each channel stretched to 0 to 255",
                              .parameters = {kProbability},
                              .make = make};

}  // namespace stoker
