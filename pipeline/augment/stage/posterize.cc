#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_posterize(const Arguments& arguments) {
  const double bits = arguments.real("bits");
  return {[=](const StageKey&, Draws& draws) { draws.add(kPosterizeStep, {bits}); }};
}

}  // namespace

const StageType kPosterize{
    .name = "posterize",
    .help = "Only the highest bits of each byte",
    .details = "bits: 1 to 8.",
    .parameters = {{"bits", ArgumentKind::whole, nullptr, 1, 8}, kProbability},
    .make = make_posterize};

}  // namespace stoker
