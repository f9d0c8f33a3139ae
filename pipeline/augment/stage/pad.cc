#include <stdexcept>

#include "pipeline/augment/stage/padding.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_pad(const Arguments& arguments) {
  const std::array<int, 4> sides = padding_sides(arguments, "padding");
  const auto padding = static_cast<Padding>(arguments.choice("mode"));
  const Rgb fill = arguments.colour("fill");
  return {[=](const StageKey&, Draws& draws) {
            const std::string problem = padding_problem(draws.size(), sides, padding);
            if (!problem.empty()) return draws.fail("pad: " + problem);
            add_pad(draws, sides, padding, fill);
          },
          [=](std::optional<Size> before, Size) -> std::optional<Size> {
            if (!before) return {};
            const std::string problem = padding_problem(*before, sides, padding);
            if (!problem.empty()) throw std::invalid_argument("augment: pad: " + problem);
            return Size{before->width + sides[0] + sides[2], before->height + sides[1] + sides[3]};
          }};
}

}  // namespace

const StageType kPad{
    .name = "pad",
    .help = "Pixels around the image",
    .details =
        "torchvision's Pad: at all sides, or (left and right, top and bottom), or (left, top,\n"
        "right, bottom).",
    .parameters = {{"padding", ArgumentKind::reals, nullptr, 0, kMaxSide},
                   {"fill", ArgumentKind::colour, "0", 0, 255},
                   {"mode", ArgumentKind::choice, "constant", 0, 0, kPaddingNames}},
    .make = make_pad};

}  // namespace stoker
