#include "pipeline/augment/stage/pillow_blur.h"

#include "decode/pixel/blur.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

void pillow_blur_step(const PixelStep& step, ImageView image, MutableImageView out,
                      PixelScratch& scratch) {
  pillow_gaussian_blur(image, step.values[0], out, scratch);
}

StageActions make_pillow_blur(const Arguments& arguments) {
  // clang 14 lets no lambda capture the names of a structured binding.
  const std::array<double, 2> range = arguments.range("radius");
  const double least = range[0], most = range[1];
  return {[=](const StageKey& stage, Draws& draws) {
    draws.add(kPillowBlurStep, {least == most ? least : stage.key.uniform(0, least, most)});
  }};
}

}  // namespace

const PixelKind kPillowBlurStep{
    .name = "pillow_blur", .values = {"radius"}, .make = pillow_blur_step};

const StageType kPillowBlur{
    .name = "pillow_blur",
    .help = "Pillow's ImageFilter.GaussianBlur (SimCLR, DINO): a radius drawn from a range",
    .parameters = {{"radius", ArgumentKind::range, "(0.1, 2)", 0, 1e3}, kProbability},
    .make = make_pillow_blur};

}  // namespace stoker
