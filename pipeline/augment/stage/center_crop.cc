#include "pipeline/augment/core_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// As torchvision's CenterCrop: a smaller image is padded with black first.
void draw(Size size, Draws& draws) {
  const Size source = draws.size();
  const int wide = std::max(size.width - source.width, 0);
  const int high = std::max(size.height - source.height, 0);
  if (wide > 0 || high > 0) {
    add_pad(draws, {wide / 2, high / 2, (wide + 1) / 2, (high + 1) / 2}, Padding::constant, {});
  }
  add_crop(draws, center_box(draws.size(), size));
}

StageActions make(const Arguments& arguments) {
  const std::optional<Size> size = arguments.size("size");
  return {[=](const StageKey&, Draws& draws) { draw(size.value_or(draws.output()), draws); },
          [=](std::optional<Size>, Size output) { return size.value_or(output); }};
}

}  // namespace

const StageType kCenterCrop{.name = "center_crop",
                            .help = "The centre of the image",
                            .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide}},
                            .make = make};

}  // namespace stoker
