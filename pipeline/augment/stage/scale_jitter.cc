#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_scale_jitter(const Arguments& arguments) {
  const std::optional<Size> given = arguments.size("target_size");
  const auto [least, most] = arguments.range("scale_range");
  if (!(least > 0)) arguments.refuse("scale_range", "above 0");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  return {
      [=, least = least, most = most](const StageKey& stage, Draws& draws) {
        const Size image = draws.size(), target = given.value_or(draws.output());
        const double fits = std::min(static_cast<double>(target.width) / image.width,
                                     static_cast<double>(target.height) / image.height);
        const double ratio = fits * stage.key.uniform(0, least, most);
        const Size size{truncated_side(image.width * ratio), truncated_side(image.height * ratio)};
        add_resize(draws, size, filter);
      },
      no_one_size};
}

}  // namespace

const StageType kScaleJitter{
    .name = "scale_jitter",
    .help = "Large-scale jitter: resizes to fit into a size, times a random factor",
    .details =
        "torchvision's ScaleJitter (Ghiasi et al., \"Simple Copy-Paste\", 2021), which takes\n"
        "target_size as width and height.",
    .parameters = {{"target_size", ArgumentKind::size, "", 1, kMaxSide},
                   {"scale_range", ArgumentKind::range, "(0.1, 2)", 0, 100},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames}},
    .make = make_scale_jitter};

}  // namespace stoker
