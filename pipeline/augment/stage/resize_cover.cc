#include <cmath>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// The side that decides becomes exact, the other one is rounded, and never smaller than asked for.
Size covering_size(Size image, Size cover) {
  const double wide = static_cast<double>(cover.width) / image.width;
  const double high = static_cast<double>(cover.height) / image.height;
  const auto side = [](int pixels, double ratio, int least) {
    return std::max(truncated_side(std::nearbyint(pixels * ratio)), least);
  };
  if (wide >= high) return {cover.width, side(image.height, wide, cover.height)};
  return {side(image.width, high, cover.width), cover.height};
}

StageActions make_resize_cover(const Arguments& arguments) {
  const std::optional<Size> size = arguments.size("size");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  return {[=](const StageKey&, Draws& draws) {
            add_resize(draws, covering_size(draws.size(), size.value_or(draws.output())), filter);
          },
          no_one_size};
}

}  // namespace

const StageType kResizeCover{
    .name = "resize_cover",
    .help = "The smallest size of the image's own shape that covers the given one, for a crop",
    .details =
        "Nothing is squashed: resize_cover | center_crop or resize_cover | random_crop give rows\n"
        "of an aspect bucket. diffusers' scripts and NovelAI's bucketing resize so.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames}},
    .make = make_resize_cover};

}  // namespace stoker
