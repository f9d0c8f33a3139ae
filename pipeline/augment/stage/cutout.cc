#include <stdexcept>
#include <string>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// The numbers of the draws before there were lists.
enum CutoutDraw : uint32_t { kCutoutX = 65, kCutoutY };

std::string outside_of_image(int side, Size size) {
  return "cutout: size is " + std::to_string(side) + ", must be inside the image of " +
         std::to_string(size.width) + " x " + std::to_string(size.height);
}

StageActions make_cutout(const Arguments& arguments) {
  const int side = arguments.whole("size");
  const Rgb colour = arguments.colour("value");
  const auto fits = [=](Size size) { return side <= std::min(size.width, size.height); };
  return {[=](const StageKey& stage, Draws& draws) {
            const Size size = draws.size();
            if (!fits(size)) return draws.fail(outside_of_image(side, size));
            const auto x = static_cast<int>(stage.key.below(kCutoutX, size.width - side + 1));
            const auto y = static_cast<int>(stage.key.below(kCutoutY, size.height - side + 1));
            add_fill(draws, {x, y, side, side}, colour);
          },
          [=](std::optional<Size> before, Size) {
            if (before && !fits(*before)) {
              throw std::invalid_argument("augment: " + outside_of_image(side, *before));
            }
            return before;
          }};
}

}  // namespace

const StageType kCutout{.name = "cutout",
                        .help = "A square of one colour, somewhere inside the image",
                        .parameters = {{"size", ArgumentKind::whole, nullptr, 1, kMaxSide},
                                       {"value", ArgumentKind::colour, "127", 0, 255},
                                       kProbability},
                        .make = make_cutout,
                        .shares_key = true};

}  // namespace stoker
