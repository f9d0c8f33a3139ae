#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_solarize(const Arguments& arguments) {
  const double threshold = arguments.real("threshold");
  return {[=](const StageKey&, Draws& draws) { draws.add(kSolarizeStep, {threshold}); }};
}

}  // namespace

const StageType kSolarize{
    .name = "solarize",
    .help = "Bytes of at least the threshold are inverted",
    .parameters = {{"threshold", ArgumentKind::real, nullptr, 0, 256}, kProbability},
    .make = make_solarize};

}  // namespace stoker
