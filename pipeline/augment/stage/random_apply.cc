#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_random_apply(const Arguments& arguments) {
  const std::vector<SharedStages>& lists = arguments.stages("stages");
  if (lists.size() != 1) arguments.refuse("stages", "one list");
  const SharedStages stages = lists[0];
  return {[=](const StageKey&, Draws& draws) { stages->draw(draws); },
          [=](std::optional<Size> before, Size output) { return stages->size(before, output); }};
}

}  // namespace

const StageType kRandomApply{.name = "random_apply",
                             .help = "All of a list of stages, or none of them",
                             .parameters = {{"stages", ArgumentKind::stages, nullptr},
                                            {"p", ArgumentKind::real, "0.5", 0, 1}},
                             .make = make_random_apply};

}  // namespace stoker
