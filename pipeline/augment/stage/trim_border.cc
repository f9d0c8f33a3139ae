#include <stdexcept>
#include <string>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// Returns why an image of this size has nothing left; "" if it has.
std::string border_problem(Size size, int border) {
  if (std::min(size.width, size.height) > 2 * border) return "";
  return "trim_border: a border of " + std::to_string(border) + " pixels is all of an image of " +
         std::to_string(size.width) + " x " + std::to_string(size.height);
}

// As timm's TrimBorder.
StageActions make_trim_border(const Arguments& arguments) {
  const int border = arguments.whole("border");
  return {[=](const StageKey&, Draws& draws) {
            const Size size = draws.size();
            const std::string problem = border_problem(size, border);
            if (!problem.empty()) return draws.fail(problem);
            add_crop(draws, {border, border, size.width - 2 * border, size.height - 2 * border});
          },
          [=](std::optional<Size> before, Size) -> std::optional<Size> {
            if (!before) return {};
            const std::string problem = border_problem(*before, border);
            if (!problem.empty()) throw std::invalid_argument("augment: " + problem);
            return Size{before->width - 2 * border, before->height - 2 * border};
          }};
}

}  // namespace

const StageType kTrimBorder{
    .name = "trim_border",
    .help = "All but so many pixels at each side",
    .details = "timm's TrimBorder.",
    .parameters = {{"border", ArgumentKind::whole, nullptr, 0, kMaxSide / 2}},
    .make = make_trim_border};

}  // namespace stoker
