#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// The numbers that a draw takes.
enum KeepRatioDraw : uint32_t { kScaled, kScale, kStretched, kAspect };

struct KeepRatio {
  std::optional<Size> size;
  double longest;
  std::array<double, 2> scale, aspect;
  double scale_p, aspect_p;
  bool scale_area;
};

// Factors of height and width, beside the ratio that is kept.
struct Stretch {
  double height = 1, width = 1;
};

Stretch draw_stretch(const KeepRatio& keep, const RandomKey& key) {
  Stretch stretch;
  if (key.uniform(kScaled) < keep.scale_p) {
    const double scale = key.uniform(kScale, keep.scale[0], keep.scale[1]);
    stretch.height = stretch.width = keep.scale_area ? 1 / std::sqrt(scale) : scale;
  }
  if (key.uniform(kStretched) < keep.aspect_p) {
    const double logarithm =
        key.uniform(kAspect, std::log(keep.aspect[0]), std::log(keep.aspect[1]));
    const double aspect = std::sqrt(std::exp(logarithm));
    stretch = {stretch.height / aspect, stretch.width * aspect};
  }
  return stretch;
}

// As timm's ResizeKeepRatio: between the size that covers `wanted` (longest 0) and the one that
// lies inside it (longest 1). A side has at least one pixel, and no more than can be made.
Size resized_by(const KeepRatio& keep, Size image, Size wanted, const Stretch& stretch) {
  constexpr double kMax = 1 << 30;
  const double across = static_cast<double>(image.width) / wanted.width;
  const double down = static_cast<double>(image.height) / wanted.height;
  const auto [least, most] = std::minmax(across, down);
  const double ratio = most * keep.longest + least * (1.0 - keep.longest);
  const auto side = [&](int pixels, double factor) {
    return round_half_even(std::clamp(pixels * factor / ratio, 1.0, kMax));
  };
  return {side(image.width, stretch.width), side(image.height, stretch.height)};
}

StageActions make_resize_keep_ratio(const Arguments& arguments) {
  const KeepRatio keep{.size = arguments.size("size"),
                       .longest = arguments.real("longest"),
                       .scale = arguments.range("scale"),
                       .aspect = arguments.range("aspect"),
                       .scale_p = arguments.real("scale_p"),
                       .aspect_p = arguments.real("aspect_p"),
                       .scale_area = arguments.flag("scale_area")};
  if (!(keep.scale[0] > 0)) arguments.refuse("scale", "above 0");
  if (!(keep.aspect[0] > 0)) arguments.refuse("aspect", "above 0");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  const bool is_random = keep.scale_p > 0 || keep.aspect_p > 0;
  return {[=](const StageKey& stage, Draws& draws) {
            const Size wanted = keep.size.value_or(draws.output());
            const Stretch stretch = draw_stretch(keep, stage.key);
            add_resize(draws, resized_by(keep, draws.size(), wanted, stretch), filter);
          },
          [=](std::optional<Size> before, Size output) -> std::optional<Size> {
            const Size wanted = keep.size.value_or(output);
            if (!before || is_random || wanted == Size{}) return {};
            return resized_by(keep, *before, wanted, {});
          }};
}

}  // namespace

const StageType kResizeKeepRatio{
    .name = "resize_keep_ratio",
    .help = "timm's ResizeKeepRatio: covers a size, or lies inside it; at random a bit larger",
    .details =
        "longest=0: an image of the same width / height that covers the size; 1: one that\n"
        "lies inside it; others are between both. scale_p: the probability that the sides are\n"
        "multiplied by a number from scale; with scale_area by 1 / sqrt(number), as the zoom\n"
        "of a crop that has this share of the area. aspect_p: the same for width / height, by\n"
        "a number from aspect.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"longest", ArgumentKind::real, "0", 0, 1},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames},
                   {"scale_p", ArgumentKind::real, "0", 0, 1},
                   {"scale", ArgumentKind::range, "(0.85, 1.05)", 0, 100},
                   {"scale_area", ArgumentKind::flag, "False"},
                   {"aspect_p", ArgumentKind::real, "0", 0, 1},
                   {"aspect", ArgumentKind::range, "(0.9, 1.11)", 0, 100}},
    .make = make_resize_keep_ratio};

}  // namespace stoker
