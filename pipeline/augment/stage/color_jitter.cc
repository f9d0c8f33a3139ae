#include <algorithm>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// The numbers of the draws before there were lists.
enum JitterDraw : uint32_t {
  kJitterOrder = 69,
  kJitterFactor  // four of them
};

constexpr const char* kJitterNames[4] = {"brightness", "contrast", "saturation", "hue"};

struct Jitter {
  std::array<std::array<double, 2>, 4> range;
};

// As transforms.ColorJitter of torchvision. Factors are floats, as its tensors of them were.
void draw_jitter(const Jitter& jitter, const RandomKey& key, Draws& draws) {
  const PixelKind* const kinds[4] = {&kBrightnessStep, &kContrastStep, &kSaturationStep, &kHueStep};
  std::array<uint8_t, 4> order{0, 1, 2, 3};
  int64_t permutation = key.below(kJitterOrder, 24);
  // Moves one of the `left` last entries to their front.
  for (int left = 4; left > 1; --left) {
    uint8_t* const first = order.data() + 4 - left;
    std::rotate(first, first + permutation % left, first + permutation % left + 1);
    permutation /= left;
  }
  for (const uint8_t op : order) {
    const auto [least, most] = jitter.range[op];
    const double unchanged = op == 3 ? 0 : 1;
    if (least == unchanged && most == unchanged) continue;
    const auto factor = static_cast<float>(key.uniform(kJitterFactor + op, least, most));
    if (factor != static_cast<float>(unchanged)) draws.add(*kinds[op], {double{factor}});
  }
}

StageActions make_color_jitter(const Arguments& arguments) {
  Jitter jitter;
  for (size_t op = 0; op < 4; ++op) {
    const bool hue = op == 3;
    jitter.range[op] = arguments.spread(kJitterNames[op], hue ? 0 : 1, hue ? -0.5 : 0);
    if (!hue && jitter.range[op][0] < 0) arguments.refuse(kJitterNames[op], "0 or more");
    if (hue && (jitter.range[op][0] < -0.5 || jitter.range[op][1] > 0.5)) {
      arguments.refuse(kJitterNames[op], "0 to 0.5, or two numbers from -0.5 to 0.5");
    }
  }
  return {[=](const StageKey& stage, Draws& draws) { draw_jitter(jitter, stage.key, draws); }};
}

}  // namespace

const StageType kColorJitter{
    .name = "color_jitter",
    .help = "Brightness, contrast, saturation and hue by random factors, in a random order",
    .details =
        "torchvision's ColorJitter: a number s is (max(0, 1 - s), 1 + s), of hue (-s, s); 0:\n"
        "off.",
    .parameters = {{"brightness", ArgumentKind::spread, "0", 0, 1e3},
                   {"contrast", ArgumentKind::spread, "0", 0, 1e3},
                   {"saturation", ArgumentKind::spread, "0", 0, 1e3},
                   {"hue", ArgumentKind::spread, "0", -0.5, 0.5},
                   kProbability},
    .make = make_color_jitter,
    .shares_key = true};

}  // namespace stoker
