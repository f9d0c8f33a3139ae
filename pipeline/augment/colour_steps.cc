#include "pipeline/augment/colour_steps.h"

#include <algorithm>
#include <cstring>

#include "decode/pixel/colour.h"
#include "pipeline/augment/core_steps.h"

namespace stoker {
namespace {

// Adapts a function of the pixels and one factor.
template <void (*kFunction)(MutableImageView, double)>
void with_factor(const PixelStep& step, MutableImageView image, PixelScratch&) {
  kFunction(image, step.values[0]);
}

template <void (*kFunction)(MutableImageView)>
void alone(const PixelStep&, MutableImageView image, PixelScratch&) {
  kFunction(image);
}

void sharpness(const PixelStep& step, MutableImageView image, PixelScratch& scratch) {
  adjust_sharpness(image, step.values[0], scratch);
}

void fill(const PixelStep& step, MutableImageView image, PixelScratch&) {
  const auto [left, top, width, height] = crop_box(step);
  uint8_t* const first = image.data + top * image.stride_bytes + ptrdiff_t{3} * left;
  for (int y = 0; y < height; ++y) {
    if (y > 0) {  // a line is copied faster than its pixels are written
      std::memcpy(first + y * image.stride_bytes, first, 3 * static_cast<size_t>(width));
      continue;
    }
    for (int x = 0; x < width; ++x) std::copy_n(step.fill.data(), 3, first + ptrdiff_t{3} * x);
  }
}

}  // namespace

const PixelKind kBrightnessStep{.name = "brightness",
                                .values = {"factor"},
                                .change = with_factor<adjust_brightness>,
                                .table = [](const PixelStep& step, ByteTable& table) {
                                  table = brightness_table(step.values[0]);
                                }};
const PixelKind kContrastStep{
    .name = "contrast", .values = {"factor"}, .change = with_factor<adjust_contrast>};
const PixelKind kSaturationStep{
    .name = "saturation", .values = {"factor"}, .change = with_factor<adjust_saturation>};
const PixelKind kHueStep{.name = "hue", .values = {"factor"}, .change = with_factor<adjust_hue>};
const PixelKind kSharpnessStep{.name = "sharpness", .values = {"factor"}, .change = sharpness};
const PixelKind kGrayscaleStep{.name = "grayscale", .change = alone<grayscale>};
const PixelKind kInvertStep{
    .name = "invert", .change = alone<invert>, .table = [](const PixelStep&, ByteTable& table) {
      table = invert_table();
    }};
const PixelKind kEqualizeStep{.name = "equalize", .change = alone<equalize>};
const PixelKind kAutocontrastStep{.name = "autocontrast", .change = alone<autocontrast>};
const PixelKind kPosterizeStep{
    .name = "posterize",
    .values = {"bits"},
    .change = [](const PixelStep& step, MutableImageView image,
                 PixelScratch&) { posterize(image, static_cast<int>(step.values[0])); },
    .table = [](const PixelStep& step,
                ByteTable& table) { table = posterize_table(static_cast<int>(step.values[0])); }};
const PixelKind kSolarizeStep{.name = "solarize",
                              .values = {"threshold"},
                              .change = with_factor<solarize>,
                              .table = [](const PixelStep& step, ByteTable& table) {
                                table = solarize_table(step.values[0]);
                              }};
const PixelKind kFillStep{
    .name = "fill", .values = {"x", "y", "width", "height"}, .fill = true, .change = fill};

void add_fill(Draws& draws, Box box, Rgb colour) {
  PixelStep& step =
      draws.add(kFillStep, {double(box.x), double(box.y), double(box.width), double(box.height)});
  step.fill = colour;
}

}  // namespace stoker
