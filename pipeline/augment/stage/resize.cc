#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// As torchvision's Resize: a longer side above max_size shortens both.
Size resized_to(Size source, int short_side, int max_size) {
  Size size = by_short_side(source, short_side);
  int& longer = size.width > size.height ? size.width : size.height;
  int& shorter = size.width > size.height ? size.height : size.width;
  if (max_size > 0 && longer > max_size) {
    shorter = std::max(static_cast<int>(int64_t{max_size} * shorter / longer), 1);
    longer = max_size;
  }
  return size;
}

StageActions make_resize(const Arguments& arguments) {
  const std::vector<double> sides = arguments.numbers("size");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  const int max_size = arguments.whole("max_size");
  if (sides.size() != 1) {
    if (max_size != 0) arguments.refuse("max_size", "0, unless size is the short side alone");
    const std::optional<Size> size = arguments.size("size");
    return {[=](const StageKey&, Draws& draws) {
              add_resize(draws, size.value_or(draws.output()), filter);
            },
            [=](std::optional<Size>, Size output) { return size.value_or(output); }};
  }
  const int short_side = static_cast<int>(sides[0]);
  if (max_size != 0 && max_size <= short_side) {
    arguments.refuse("max_size", "0 or more than size");
  }
  const auto after = [=](Size before) { return resized_to(before, short_side, max_size); };
  return {[=](const StageKey&, Draws& draws) { add_resize(draws, after(draws.size()), filter); },
          [=](std::optional<Size> before, Size) -> std::optional<Size> {
            if (!before) return {};
            return after(*before);
          }};
}

}  // namespace

const StageType kResize{
    .name = "resize",
    .help = "Resizes to a short side, or to a height and width; to the row's without a size",
    .details =
        "torchvision's Resize: one number is the short side, and the longer one is at most\n"
        "max_size (0: any); (height, width) are both.",
    .parameters = {{"size", ArgumentKind::sides, "", 1, kMaxSide},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames},
                   {"max_size", ArgumentKind::whole, "0", 0, kMaxSide}},
    .make = make_resize};

}  // namespace stoker
