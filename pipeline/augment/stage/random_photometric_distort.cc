#include <array>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// The draws of each colour: whether it is changed, and the factor.
enum DistortDraw : uint32_t {
  kDistorted = 0,
  kDistortFactor = 4,
  kContrastFirst = 8,
  kPermuted,
  kPermutation
};
enum DistortColour : uint32_t {
  kDistortBrightness,
  kDistortContrast,
  kDistortSaturation,
  kDistortHue
};

constexpr const char* kDistortNames[4] = {"brightness", "contrast", "saturation", "hue"};
constexpr std::array<std::array<int, 3>, 6> kChannelOrders{
    {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};

struct Distortion {
  std::array<std::array<double, 2>, 4> range;
  double p;
};

// As torchvision's RandomPhotometricDistort. Factors are floats, as its tensors of them were.
void draw_distortion(const Distortion& distortion, const RandomKey& key, Draws& draws) {
  const auto change = [&](const PixelKind& kind, DistortColour colour) {
    if (key.uniform(uint32_t{kDistorted} + colour) >= distortion.p) return;
    const auto [least, most] = distortion.range[colour];
    draws.add(
        kind,
        {double{static_cast<float>(key.uniform(uint32_t{kDistortFactor} + colour, least, most))}});
  };
  const bool contrast_first = key.uniform(kContrastFirst) < 0.5;
  change(kBrightnessStep, kDistortBrightness);
  if (contrast_first) change(kContrastStep, kDistortContrast);
  change(kSaturationStep, kDistortSaturation);
  change(kHueStep, kDistortHue);
  if (!contrast_first) change(kContrastStep, kDistortContrast);
  if (key.uniform(kPermuted) >= distortion.p) return;
  const int64_t order = key.below(kPermutation, kChannelOrders.size());
  if (order == 0) return;
  const auto [red, green, blue] = kChannelOrders[static_cast<size_t>(order)];
  draws.add(kPermuteStep, {double(red), double(green), double(blue)});
}

StageActions make_random_photometric_distort(const Arguments& arguments) {
  Distortion distortion{.range = {}, .p = arguments.real("p")};
  for (size_t i = 0; i < 4; ++i) distortion.range[i] = arguments.range(kDistortNames[i]);
  return {
      [=](const StageKey& stage, Draws& draws) { draw_distortion(distortion, stage.key, draws); }};
}

}  // namespace

const StageType kRandomPhotometricDistort{
    .name = "random_photometric_distort",
    .help = "Brightness, contrast, saturation, hue and the order of channels, each with p",
    .details =
        "torchvision's RandomPhotometricDistort (Liu et al., \"SSD\", 2016): the contrast before\n"
        "or after saturation and hue. Two numbers are the least and the most factor.",
    .parameters = {{"brightness", ArgumentKind::range, "(0.875, 1.125)", 0, 1e3},
                   {"contrast", ArgumentKind::range, "(0.5, 1.5)", 0, 1e3},
                   {"hue", ArgumentKind::range, "(-0.05, 0.05)", -0.5, 0.5},
                   {"saturation", ArgumentKind::range, "(0.5, 1.5)", 0, 1e3},
                   {"p", ArgumentKind::real, "0.5", 0, 1}},
    .make = make_random_photometric_distort,
    .draws_probability = true};

}  // namespace stoker
