#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_autocontrast(const Arguments&) {
  return {[](const StageKey&, Draws& draws) { draws.add(kAutocontrastStep); }};
}

}  // namespace

const StageType kAutocontrast{.name = "autocontrast",
                              .help = "Each channel stretched to 0 to 255",
                              .details = "Pillow's ImageOps.autocontrast.",
                              .parameters = {kProbability},
                              .make = make_autocontrast};

}  // namespace stoker
