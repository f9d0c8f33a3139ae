#include <string>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// A corner of torchvision's FiveCrop (five_crop.cc).
StageActions make_corner_crop(const Arguments& arguments) {
  const std::optional<Size> given = arguments.size("size");
  const bool right = arguments.choice("corner") % 2 != 0, bottom = arguments.choice("corner") >= 2;
  return {[=](const StageKey&, Draws& draws) {
            const Size image = draws.size(), size = given.value_or(draws.output());
            if (size.width > image.width || size.height > image.height) {
              return draws.fail("corner_crop: " + std::to_string(size.width) + " x " +
                                std::to_string(size.height) + " pixels of an image of " +
                                std::to_string(image.width) + " x " + std::to_string(image.height));
            }
            add_crop(draws, {right ? image.width - size.width : 0,
                             bottom ? image.height - size.height : 0, size.width, size.height});
          },
          [=](std::optional<Size>, Size output) { return given.value_or(output); }};
}

}  // namespace

const StageType kCornerCrop{
    .name = "corner_crop",
    .help = "One corner of the image; five_crop has all four",
    .parameters = {{"corner", ArgumentKind::choice, nullptr, 0, 0, kCornerNames},
                   {"size", ArgumentKind::size, "", 1, kMaxSide}},
    .make = make_corner_crop};

}  // namespace stoker
