#include "pipeline/augment/stage/padding.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// As torchvision's CenterCrop: a smaller image is padded first. (There with black; timm's
// CenterCropOrPad has the other paddings.)
void draw_center_crop(Size size, Padding padding, Rgb fill, Draws& draws) {
  const Size source = draws.size();
  const int wide = std::max(size.width - source.width, 0);
  const int high = std::max(size.height - source.height, 0);
  if (wide > 0 || high > 0) {
    const std::array<int, 4> sides{wide / 2, high / 2, (wide + 1) / 2, (high + 1) / 2};
    const std::string problem = padding_problem(source, sides, padding);
    if (!problem.empty()) return draws.fail("center_crop: " + problem);
    add_pad(draws, sides, padding, fill);
  }
  add_crop(draws, center_box(draws.size(), size));
}

StageActions make_center_crop(const Arguments& arguments) {
  const std::optional<Size> size = arguments.size("size");
  const Rgb fill = arguments.colour("fill");
  const auto padding = static_cast<Padding>(arguments.choice("mode"));
  return {[=](const StageKey&, Draws& draws) {
            draw_center_crop(size.value_or(draws.output()), padding, fill, draws);
          },
          [=](std::optional<Size>, Size output) { return size.value_or(output); }};
}

}  // namespace

const StageType kCenterCrop{
    .name = "center_crop",
    .help = "The centre of the image; a smaller one is padded first",
    .details = "torchvision's CenterCrop; the padding is that of pad.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"fill", ArgumentKind::colour, "0", 0, 255},
                   {"mode", ArgumentKind::choice, "constant", 0, 0, kPaddingNames}},
    .make = make_center_crop};

}  // namespace stoker
