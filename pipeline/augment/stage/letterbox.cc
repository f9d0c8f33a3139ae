#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

void draw_letterbox(Size size, Rgb fill, Filter filter, Draws& draws) {
  const Size fitted = fitted_size(draws.size(), size);
  add_resize(draws, fitted, filter);
  if (fitted == size) return;
  const auto [left, right] = halves(size.width - fitted.width);
  const auto [top, bottom] = halves(size.height - fitted.height);
  add_pad(draws, {left, top, right, bottom}, Padding::constant, fill);
}

StageActions make_letterbox(const Arguments& arguments) {
  const std::optional<Size> given = arguments.size("size");
  const Rgb fill = arguments.colour("fill");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  return {[=](const StageKey&, Draws& draws) {
            draw_letterbox(given.value_or(draws.output()), fill, filter, draws);
          },
          [=](std::optional<Size>, Size output) { return given.value_or(output); }};
}

}  // namespace

const StageType kLetterbox{
    .name = "letterbox",
    .help = "Resizes to fit into a size, in the middle of a canvas of that size",
    .details =
        "As the YOLO family does it: smaller images are enlarged, and of an odd number of\n"
        "missing pixels, the right or the bottom has one more.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"fill", ArgumentKind::colour, "114", 0, 255},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames}},
    .make = make_letterbox};

}  // namespace stoker
