#include "pipeline/augment/policy_ops.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// As torchvision's RandomRotation.
StageActions make_rotate(const Arguments& arguments) {
  const auto [least, most] = arguments.spread("degrees", 0, -1e6);
  const bool expand = arguments.flag("expand");
  std::optional<Point> center;
  const std::vector<double>& point = arguments.numbers("center");
  if (!point.empty() && point.size() != 2) arguments.refuse("center", "two numbers: (x, y)");
  if (!point.empty()) center = Point{point[0], point[1]};
  const WarpOptions options = warp_options(arguments);
  return {[=, least = least, most = most](const StageKey& stage, Draws& draws) {
            add_rotation(draws, least == most ? least : stage.key.uniform(0, least, most), options,
                         expand, center);
          },
          [=](std::optional<Size> before, Size) { return expand ? std::nullopt : before; }};
}

}  // namespace

const StageType kRotate{
    .name = "rotate",
    .help = "Turned by an angle between two, or from -degrees to degrees; counterclockwise",
    .details =
        "torchvision's RandomRotation. expand: the image grows to hold all of it. center: (x,\n"
        "y) in pixels; without it the middle.",
    .parameters = {{"degrees", ArgumentKind::spread, nullptr, -1e4, 1e4},
                   kPolicyInterpolation,
                   {"expand", ArgumentKind::flag, "False"},
                   {"center", ArgumentKind::reals, "", -1e6, 1e6},
                   kFillParameter,
                   kProbability},
    .make = make_rotate};

}  // namespace stoker
