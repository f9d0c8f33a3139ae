#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

enum HsvDraw : uint32_t { kHsvHue, kHsvSaturation, kHsvValue };

struct HsvGains {
  double hue, saturation, value;
};

// As RandomHSV of Ultralytics, which does nothing if all gains are 0.
void draw_hsv(const HsvGains& gains, const RandomKey& key, Draws& draws) {
  if (gains.hue == 0 && gains.saturation == 0 && gains.value == 0) return;
  const auto drawn = [&](HsvDraw draw, double gain) { return key.uniform(draw, -1, 1) * gain; };
  draws.add(kHsvStep, {drawn(kHsvHue, gains.hue), drawn(kHsvSaturation, gains.saturation) + 1,
                       drawn(kHsvValue, gains.value) + 1});
}

StageActions make_random_hsv(const Arguments& arguments) {
  const HsvGains gains{.hue = arguments.real("hue"),
                       .saturation = arguments.real("saturation"),
                       .value = arguments.real("value")};
  return {[=](const StageKey& stage, Draws& draws) { draw_hsv(gains, stage.key, draws); }};
}

}  // namespace

const StageType kRandomHsv{
    .name = "random_hsv",
    .help = "Hue, saturation and value by random numbers, as the YOLO family changes them",
    .details =
        "Ultralytics' RandomHSV, with the bytes of OpenCV's 8-bit HSV: a hue of h turns by -h to\n"
        "h of the colour circle, a saturation or value of s is multiplied by 1 - s to 1 + s.",
    .parameters = {{"hue", ArgumentKind::real, "0.015", 0, 1},
                   {"saturation", ArgumentKind::real, "0.7", 0, 1},
                   {"value", ArgumentKind::real, "0.4", 0, 1},
                   kProbability},
    .make = make_random_hsv};

}  // namespace stoker
