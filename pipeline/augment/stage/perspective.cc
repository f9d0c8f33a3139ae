#include "decode/pixel/warp_matrix.h"
#include "pipeline/augment/policy_ops.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// As torchvision's RandomPerspective: every corner moves towards the middle.
void draw_perspective(double distortion, const RandomKey& key, const WarpOptions& options,
                      Draws& draws) {
  const auto [width, height] = draws.size();
  const int most_x = static_cast<int>(distortion * (width / 2)) + 1;
  const int most_y = static_cast<int>(distortion * (height / 2)) + 1;
  const auto near = [&](uint32_t number, int most) {
    return static_cast<int>(key.below(number, most));
  };
  const auto far = [&](uint32_t number, int most, int side) {
    return side - most + near(number, most);
  };
  const int right = width - 1, bottom = height - 1;
  const Corners from{{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
  const Corners to{{{near(0, most_x), near(1, most_y)},
                    {far(2, most_x, width), near(3, most_y)},
                    {far(4, most_x, width), far(5, most_y, height)},
                    {near(6, most_x), far(7, most_y, height)}}};
  const auto coefficients = perspective_coefficients(from, to);
  if (!coefficients) return draws.fail("perspective: the corners lie on a line");
  add_perspective(draws, *coefficients, options);
}

StageActions make_perspective(const Arguments& arguments) {
  const double distortion = arguments.real("distortion_scale");
  const WarpOptions options = warp_options(arguments);
  return {[=](const StageKey& stage, Draws& draws) {
    if (draws.size().width < 2 || draws.size().height < 2) {
      return draws.fail("perspective: the image has less than 2 x 2 pixels");
    }
    draw_perspective(distortion, stage.key, options, draws);
  }};
}

}  // namespace

const StageType kPerspective{
    .name = "perspective",
    .help = "Seen from the side: each corner moves by up to a share of half a side",
    .details = "torchvision's RandomPerspective.",
    .parameters = {{"distortion_scale", ArgumentKind::real, "0.5", 0, 1},
                   kBilinearParameter,
                   kFillParameter,
                   kProbability},
    .make = make_perspective};

}  // namespace stoker
