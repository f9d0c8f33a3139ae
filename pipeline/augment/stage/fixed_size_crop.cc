#include <algorithm>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/padding.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

struct FixedSize {
  std::optional<Size> size;
  Rgb fill;
  Padding padding;
};

// As FixedSizeCrop of torchvision's references: one number decides both offsets.
void draw_fixed_size(const FixedSize& fixed, const RandomKey& key, Draws& draws) {
  const Size image = draws.size(), size = fixed.size.value_or(draws.output());
  const Size shown{std::min(image.width, size.width), std::min(image.height, size.height)};
  if (shown != image) {
    const double share = key.uniform(0);
    add_crop(draws,
             {static_cast<int>((image.width - shown.width) * share),
              static_cast<int>((image.height - shown.height) * share), shown.width, shown.height});
    draws.add(kDropEmptyStep);
  }
  if (shown == size) return;
  const std::array<int, 4> sides{0, 0, size.width - shown.width, size.height - shown.height};
  const std::string problem = padding_problem(shown, sides, fixed.padding);
  if (!problem.empty()) return draws.fail("fixed_size_crop: " + problem);
  add_pad(draws, sides, fixed.padding, fixed.fill);
}

StageActions make_fixed_size_crop(const Arguments& arguments) {
  const FixedSize fixed{arguments.size("size"), arguments.colour("fill"),
                        static_cast<Padding>(arguments.choice("mode"))};
  return {[=](const StageKey& stage, Draws& draws) { draw_fixed_size(fixed, stage.key, draws); },
          [=](std::optional<Size>, Size output) { return fixed.size.value_or(output); }};
}

}  // namespace

const StageType kFixedSizeCrop{
    .name = "fixed_size_crop",
    .help = "A box at a random place; what is missing is added at the right and the bottom",
    .details =
        "FixedSizeCrop of torchvision's references (large-scale jitter): x and y are the same\n"
        "share of what is cut off. Objects of which a crop leaves nothing are dropped.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"fill", ArgumentKind::colour, "0", 0, 255},
                   {"mode", ArgumentKind::choice, "constant", 0, 0, kPaddingNames}},
    .make = make_fixed_size_crop};

}  // namespace stoker
