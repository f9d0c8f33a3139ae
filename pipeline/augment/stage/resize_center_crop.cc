#include <string>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_resize_center_crop(const Arguments& arguments) {
  const std::optional<Size> given = arguments.size("size");
  const int given_short = arguments.whole("short");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  const auto short_side = [=](Size size) {
    return given_short != 0 ? given_short : std::max(size.width, size.height) * 256 / 224;
  };
  return {[=](const StageKey&, Draws& draws) {
            const Size size = given.value_or(draws.output());
            add_resize(draws, by_short_side(draws.size(), short_side(size)), filter);
            add_crop(draws, center_box(draws.size(), size));
          },
          [=](std::optional<Size>, Size output) {
            const Size size = given.value_or(output);
            const int longer = std::max(size.width, size.height);
            if (given_short != 0 && given_short < longer) {
              throw std::invalid_argument(
                  "augment: resize_center_crop: short is " + std::to_string(given_short) +
                  ", must be 0 or at least the row's longer side, " + std::to_string(longer));
            }
            return size;
          }};
}

}  // namespace

const StageType kResizeCenterCrop{
    .name = "resize_center_crop",
    .help =
        "The short side resized (by default to 256 / 224 of the row's), and its centre: for "
        "evaluation",
    .details =
        "torchvision's Resize(short) and CenterCrop(size). short: at least the row's longer\n"
        "side; 0: that one times 256 / 224.",
    .parameters = {{"short", ArgumentKind::whole, "0", 0, kMaxSide},
                   {"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames}},
    .make = make_resize_center_crop};

}  // namespace stoker
