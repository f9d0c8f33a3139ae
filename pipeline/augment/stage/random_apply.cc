#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_random_apply(const Arguments& arguments) {
  const SharedStages stages = arguments.stages("stages")[0];
  return {[=](const StageKey&, Draws& draws) { stages->draw(draws); },
          [=](std::optional<Size> before, Size output) { return stages->size(before, output); }};
}

}  // namespace

const StageType kRandomApply{.name = "random_apply",
                             .help = "All of a list of stages, or none of them",
                             .details = "random_apply(color_jitter(0.4) | grayscale, p=0.8)",
                             .parameters = {{"stages", ArgumentKind::stages, nullptr, 1, 1},
                                            {"p", ArgumentKind::real, "0.5", 0, 1}},
                             .make = make_random_apply};

}  // namespace stoker
