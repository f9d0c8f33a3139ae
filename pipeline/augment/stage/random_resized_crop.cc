#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

constexpr int kCropTries = 10;  // each takes four numbers, from draw 0 on

struct CropLimits {
  std::array<double, 2> scale, ratio;
};

// As transforms.RandomResizedCrop.get_params of torchvision; only the random numbers differ (and a
// side has at least one pixel).
Box random_crop_box(const CropLimits& limits, Size source, const RandomKey& key) {
  const double area = static_cast<double>(source.width) * source.height;
  const double log_least = std::log(limits.ratio[0]), log_most = std::log(limits.ratio[1]);
  for (uint32_t attempt = 0; attempt < kCropTries; ++attempt) {
    const uint32_t first = 4 * attempt;
    const double target_area = area * key.uniform(first, limits.scale[0], limits.scale[1]);
    const double ratio = std::exp(key.uniform(first + 1, log_least, log_most));
    const int width = round_half_even(std::sqrt(target_area * ratio));
    const int height = round_half_even(std::sqrt(target_area / ratio));
    if (width > 0 && width <= source.width && height > 0 && height <= source.height) {
      const auto y = static_cast<int>(key.below(first + 2, source.height - height + 1));
      const auto x = static_cast<int>(key.below(first + 3, source.width - width + 1));
      return {x, y, width, height};
    }
  }
  Size size = source;
  const double ratio = static_cast<double>(source.width) / source.height;
  if (ratio < limits.ratio[0]) {
    size.height = round_half_even(source.width / limits.ratio[0]);
  } else if (ratio > limits.ratio[1]) {
    size.width = round_half_even(source.height * limits.ratio[1]);
  }
  size = {std::max(size.width, 1), std::max(size.height, 1)};
  return {(source.width - size.width) / 2, (source.height - size.height) / 2, size.width,
          size.height};
}

StageActions make_random_resized_crop(const Arguments& arguments) {
  const CropLimits limits{arguments.range("scale"), arguments.range("ratio")};
  if (!(limits.scale[0] > 0)) arguments.refuse("scale", "above 0 and at most 1");
  if (!(limits.ratio[0] > 0)) arguments.refuse("ratio", "above 0 and at most 10000");
  const std::optional<Size> size = arguments.size("size");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  return {[=](const StageKey& stage, Draws& draws) {
            add_crop(draws, random_crop_box(limits, draws.size(), stage.key));
            add_resize(draws, size.value_or(draws.output()), filter);
          },
          [=](std::optional<Size>, Size output) { return size.value_or(output); }};
}

}  // namespace

const StageType kRandomResizedCrop{
    .name = "random_resized_crop",
    .help = "A box of a random share of the area and random width / height, resized",
    .details =
        "torchvision's RandomResizedCrop. scale: the share of the area; ratio: width /\n"
        "height.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"scale", ArgumentKind::range, "(0.08, 1)", 0, 1},
                   {"ratio", ArgumentKind::range, "(0.75, 1.3333333333333333)", 0, 1e4},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames}},
    .make = make_random_resized_crop,
    .shares_key = true};

}  // namespace stoker
