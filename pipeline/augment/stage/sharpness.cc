#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_sharpness(const Arguments& arguments) {
  // clang 14 lets no lambda capture the names of a structured binding.
  const std::array<double, 2> range = arguments.range("factor");
  const double least = range[0], most = range[1];
  return {[=](const StageKey& stage, Draws& draws) {
    draws.add(kSharpnessStep, {least == most ? least : stage.key.uniform(0, least, most)});
  }};
}

}  // namespace

const StageType kSharpness{
    .name = "sharpness",
    .help =
        "Blended with a smoothed image: 0 smooth, 1 unchanged, 2 sharper; one factor or a range",
    .parameters = {{"factor", ArgumentKind::range, nullptr, 0, 1e3}, kProbability},
    .make = make_sharpness};

}  // namespace stoker
