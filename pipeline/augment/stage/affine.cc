#include <cmath>

#include "decode/pixel/warp_matrix.h"
#include "pipeline/augment/policy_ops.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

struct AffineLimits {
  std::array<double, 2> degrees, translate, scale, shear_x, shear_y;
  std::optional<Point> center;
};

double between(const RandomKey& key, uint32_t draw, std::array<double, 2> limits) {
  return limits[0] == limits[1] ? limits[0] : key.uniform(draw, limits[0], limits[1]);
}

// As torchvision's RandomAffine.get_params.
void draw_affine(const AffineLimits& limits, const RandomKey& key, const WarpOptions& options,
                 Draws& draws) {
  const Size size = draws.size();
  const double dx = limits.translate[0] * size.width, dy = limits.translate[1] * size.height;
  const AffineParameters parameters{
      .degrees = between(key, 0, limits.degrees),
      .translate = {double(round_half_even(between(key, 1, {-dx, dx}))),
                    double(round_half_even(between(key, 2, {-dy, dy})))},
      .scale = between(key, 3, limits.scale),
      .shear = {between(key, 4, limits.shear_x), between(key, 5, limits.shear_y)}};
  const Point middle{size.width * 0.5, size.height * 0.5};
  add_affine(draws, affine_matrix(limits.center.value_or(middle), parameters), options);
}

StageActions make_affine(const Arguments& arguments) {
  AffineLimits limits{arguments.spread("degrees", 0, -1e6),
                      arguments.range("translate"),
                      arguments.range("scale"),
                      {},
                      {},
                      {}};
  if (!(limits.scale[0] > 0)) arguments.refuse("scale", "above 0");
  const std::vector<double>& shear = arguments.numbers("shear");
  if (shear.size() == 3 || shear.size() > 4) {
    arguments.refuse("shear", "1, 2 or 4 numbers: most, (least, most) of x, and then of y");
  }
  limits.shear_x = shear.size() == 1 ? std::array<double, 2>{-shear[0], shear[0]}
                                     : std::array<double, 2>{shear[0], shear[1]};
  if (shear.size() == 4) limits.shear_y = {shear[2], shear[3]};
  const std::vector<double>& point = arguments.numbers("center");
  if (!point.empty() && point.size() != 2) arguments.refuse("center", "two numbers: (x, y)");
  if (!point.empty()) limits.center = Point{point[0], point[1]};
  const WarpOptions options = warp_options(arguments);
  return {
      [=](const StageKey& stage, Draws& draws) { draw_affine(limits, stage.key, options, draws); }};
}

}  // namespace

const StageType kAffine{
    .name = "affine",
    .help = "Turned, moved by shares of the sides, scaled and sheared, each at random",
    .details =
        "torchvision's RandomAffine. degrees: from -degrees to degrees, or between two.\n"
        "translate: at most so much of the width and of the height. shear: degrees along x,\n"
        "from -shear to shear; (least, most) of x; or (least, most of x, least, most of y).\n"
        "center: as for rotate.",
    .parameters = {{"degrees", ArgumentKind::spread, nullptr, -1e4, 1e4},
                   {"translate", ArgumentKind::reals, "(0, 0)", 0, 1},
                   {"scale", ArgumentKind::range, "(1, 1)", 0, 1e3},
                   {"shear", ArgumentKind::reals, "0", -89, 89},
                   kPolicyInterpolation,
                   kFillParameter,
                   {"center", ArgumentKind::reals, "", -1e6, 1e6},
                   kProbability},
    .make = make_affine};

}  // namespace stoker
