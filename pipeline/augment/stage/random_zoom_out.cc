#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

enum ZoomDraw : uint32_t { kZoom, kZoomLeft, kZoomTop };

// As torchvision's RandomZoomOut.
void draw_zoom_out(std::array<double, 2> range, Rgb fill, const RandomKey& key, Draws& draws) {
  const Size image = draws.size();
  const double ratio = key.uniform(kZoom, range[0], range[1]);
  const Size canvas{truncated_side(image.width * ratio), truncated_side(image.height * ratio)};
  const int wide = canvas.width - image.width, high = canvas.height - image.height;
  const int left = static_cast<int>(wide * key.uniform(kZoomLeft));
  const int top = static_cast<int>(high * key.uniform(kZoomTop));
  if (wide > 0 || high > 0) {
    add_pad(draws, {left, top, wide - left, high - top}, Padding::constant, fill);
  }
}

StageActions make_random_zoom_out(const Arguments& arguments) {
  const Rgb fill = arguments.colour("fill");
  const std::array<double, 2> range = arguments.range("side_range");
  return {
      [=](const StageKey& stage, Draws& draws) { draw_zoom_out(range, fill, stage.key, draws); },
      no_one_size};
}

}  // namespace

const StageType kRandomZoomOut{
    .name = "random_zoom_out",
    .help = "The image at a random place of a larger canvas",
    .details =
        "torchvision's RandomZoomOut (Liu et al., \"SSD\", 2016). side_range: of the canvas's\n"
        "sides, as multiples of the image's.",
    .parameters = {{"fill", ArgumentKind::colour, "0", 0, 255},
                   {"side_range", ArgumentKind::range, "(1, 4)", 1, 100},
                   {"p", ArgumentKind::real, "0.5", 0, 1}},
    .make = make_random_zoom_out};

}  // namespace stoker
