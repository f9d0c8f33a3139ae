#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

constexpr uint32_t kDraw = 64;

StageActions make_flip(const Arguments& arguments) {
  const double p = arguments.real("p");
  const bool alternating = arguments.flag("alternating");
  if (alternating && p != 0.5) arguments.refuse("p", "0.5 with alternating");
  return {[=](const StageKey& stage, Draws& draws) {
    const RandomKey key = alternating ? draws.key_of_epoch(stage.salt, 0) : stage.key;
    const bool odd = alternating && draws.epoch() % 2 != 0;
    if ((key.uniform(kDraw) >= 1 - p) != odd) draws.add(kFlipStep);
  }};
}

}  // namespace

// alternating: at random in epoch 0, then the other way in every later epoch (airbench94, Jordan
// 2024, section 3.6).
const StageType kFlip{
    .name = "flip",
    .help = "Mirrors left to right",
    .details = "alternating: at random in epoch 0, then the other way in every later epoch.",
    .parameters = {{"alternating", ArgumentKind::flag, "False"},
                   {"p", ArgumentKind::real, "0.5", 0, 1}},
    .make = make_flip,
    .draws_probability = true,
    .shares_key = true};

}  // namespace stoker
