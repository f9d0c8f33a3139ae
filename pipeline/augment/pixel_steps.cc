#include "pipeline/augment/pixel_steps.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "decode/pixel/colour.h"
#include "decode/pixel/hsv.h"
#include "decode/pixel_ops.h"

namespace stoker {
namespace {

void crop(const PixelStep& step, ImageView image, MutableImageView out, PixelScratch&) {
  const Box box = crop_box(step);
  for (int y = 0; y < box.height; ++y) {
    std::memcpy(out.data + y * out.stride_bytes,
                image.data + (box.y + y) * image.stride_bytes + ptrdiff_t{3} * box.x,
                3 * static_cast<size_t>(box.width));
  }
}

void flip(const PixelStep&, MutableImageView image, PixelScratch&) { flip_horizontal(image); }

// Returns which pixel of [0, size) is shown at `at`; -1: the fill.
int source_of(int at, int size, Padding padding) {
  if (at >= 0 && at < size) return at;
  switch (padding) {
    case Padding::constant:
      return -1;
    case Padding::edge:
      return at < 0 ? 0 : size - 1;
    case Padding::reflect:
      return at < 0 ? -at : 2 * (size - 1) - at;
    case Padding::symmetric:
      return at < 0 ? -at - 1 : 2 * size - 1 - at;
  }
  return -1;
}

void pad(const PixelStep& step, ImageView image, MutableImageView out, PixelScratch&) {
  const auto padding = static_cast<Padding>(step.choice);
  const int left = static_cast<int>(step.values[0]), top = static_cast<int>(step.values[1]);
  const auto pixel = [&](const uint8_t* line, int x, uint8_t* to) {
    const int from = line ? source_of(x, image.width, padding) : -1;
    std::memcpy(to, from < 0 ? step.fill.data() : line + ptrdiff_t{3} * from, 3);
  };
  for (int y = 0; y < out.height; ++y) {
    const int row = source_of(y - top, image.height, padding);
    const uint8_t* line = row < 0 ? nullptr : image.data + row * image.stride_bytes;
    uint8_t* to = out.data + y * out.stride_bytes;
    const int inside = line ? left : out.width;
    for (int x = 0; x < inside; ++x) pixel(line, x - left, to + ptrdiff_t{3} * x);
    if (!line) continue;
    std::memcpy(to + ptrdiff_t{3} * left, line, 3 * static_cast<size_t>(image.width));
    for (int x = left + image.width; x < out.width; ++x) {
      pixel(line, x - left, to + ptrdiff_t{3} * x);
    }
  }
}

}  // namespace

const PixelKind kCropStep{
    .name = "crop", .values = {"x", "y", "width", "height"}, .motion = Motion::crop, .make = crop};
const PixelKind kResizeStep{.name = "resize",
                            .values = {"width", "height"},
                            .choice = "filter",
                            .choices = kFilterNames,
                            .motion = Motion::resize};
const PixelKind kFlipStep{.name = "flip", .motion = Motion::flip, .change = flip};
const PixelKind kPadStep{.name = "pad",
                         .values = {"left", "top", "right", "bottom"},
                         .choice = "mode",
                         .choices = kPaddingNames,
                         .fill = true,
                         .motion = Motion::pad,
                         .make = pad};

void add_crop(Draws& draws, Box box) {
  // One after the other: a list of them would be written as two words and read back as a vector.
  PixelStep& step = draws.add(kCropStep, Size{box.width, box.height});
  step.values[0] = box.x;
  step.values[1] = box.y;
  step.values[2] = box.width;
  step.values[3] = box.height;
}

void add_resize(Draws& draws, Size size, Filter filter) {
  if (size == draws.size()) return;
  PixelStep& step = draws.add(kResizeStep, size, {double(size.width), double(size.height)});
  step.choice = static_cast<uint8_t>(filter);
}

void add_pad(Draws& draws, const std::array<int, 4>& sides, Padding padding, Rgb fill) {
  if (padding != Padding::constant && draws.has_objects()) {
    draws.fail(std::string("padding with mode ") + kPaddingNames[static_cast<int>(padding)] +
               ": what lies on the picture (boxes, masks) would be there twice");
  }
  const auto [left, top, right, bottom] = sides;
  const Size size{draws.size().width + left + right, draws.size().height + top + bottom};
  PixelStep& step =
      draws.add(kPadStep, size, {double(left), double(top), double(right), double(bottom)});
  step.choice = static_cast<uint8_t>(padding);
  step.fill = fill;
}

Box crop_box(const PixelStep& step) {
  const auto whole = [&](size_t i) { return static_cast<int>(step.values[i]); };
  return {whole(0), whole(1), whole(2), whole(3)};
}

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

void fill_of_step(const PixelStep& step, MutableImageView image, PixelScratch&) {
  fill_box(image, crop_box(step), step.fill);
}

}  // namespace

void fill_box(MutableImageView image, Box box, Rgb colour) {
  uint8_t* const first = image.data + box.y * image.stride_bytes + ptrdiff_t{3} * box.x;
  for (int y = 0; y < box.height; ++y) {
    if (y > 0) {  // a line is copied faster than its pixels are written
      std::memcpy(first + y * image.stride_bytes, first, 3 * static_cast<size_t>(box.width));
      continue;
    }
    for (int x = 0; x < box.width; ++x) std::copy_n(colour.data(), 3, first + ptrdiff_t{3} * x);
  }
}

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
const PixelKind kHsvStep{
    .name = "hsv",
    .values = {"hue", "saturation", "value"},
    .change = [](const PixelStep& step, MutableImageView image, PixelScratch&) {
      adjust_hsv(image,
                 {.hue = step.values[0], .saturation = step.values[1], .value = step.values[2]});
    }};
const PixelKind kSharpnessStep{.name = "sharpness", .values = {"factor"}, .change = sharpness};
const PixelKind kGrayscaleStep{.name = "grayscale", .change = alone<grayscale>};
const PixelKind kPermuteStep{
    .name = "permute_channels",
    .values = {"red", "green", "blue"},
    .change = [](const PixelStep& step, MutableImageView image, PixelScratch&) {
      const auto from = [&](size_t channel) { return static_cast<int>(step.values[channel]); };
      permute_channels(image, {from(0), from(1), from(2)});
    }};
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
    .name = "fill", .values = {"x", "y", "width", "height"}, .fill = true, .change = fill_of_step};

void add_fill(Draws& draws, Box box, Rgb colour) {
  PixelStep& step =
      draws.add(kFillStep, {double(box.x), double(box.y), double(box.width), double(box.height)});
  step.fill = colour;
}

namespace {

void affine(const PixelStep& step, ImageView image, MutableImageView out, PixelScratch&) {
  std::array<double, 6> matrix;
  std::copy_n(step.values.begin(), matrix.size(), matrix.begin());
  warp_affine(image, matrix, static_cast<Interpolation>(step.choice), step.fill, out);
}

void perspective(const PixelStep& step, ImageView image, MutableImageView out, PixelScratch&) {
  warp_perspective(image, step.values, static_cast<Interpolation>(step.choice), step.fill, out);
}

void turn_quarters(const PixelStep& step, ImageView image, MutableImageView out, PixelScratch&) {
  turn(image, static_cast<int>(step.values[0]), out);
}

void set(PixelStep& step, const WarpOptions& options) {
  step.choice = static_cast<uint8_t>(options.interpolation);
  step.fill = options.fill;
}

}  // namespace

const PixelKind kAffineStep{.name = "affine",
                            .values = {"a", "b", "c", "d", "e", "f"},
                            .choice = "interpolation",
                            .choices = kInterpolationNames,
                            .fill = true,
                            .motion = Motion::affine,
                            .make = affine};
const PixelKind kPerspectiveStep{.name = "perspective",
                                 .values = {"a", "b", "c", "d", "e", "f", "g", "h"},
                                 .choice = "interpolation",
                                 .choices = kInterpolationNames,
                                 .fill = true,
                                 .motion = Motion::perspective,
                                 .make = perspective};

const PixelKind kTurnStep{
    .name = "turn", .values = {"quarters"}, .motion = Motion::turn, .make = turn_quarters};

void add_affine(Draws& draws, const std::array<double, 6>& matrix, const WarpOptions& options) {
  const auto [a, b, c, d, e, f] = matrix;
  set(draws.add(kAffineStep, {a, b, c, d, e, f}), options);
}

void add_rotation(Draws& draws, double degrees, const WarpOptions& options, bool expand,
                  std::optional<Point> center) {
  const Size before = draws.size();
  const auto quarters = quarter_turns(degrees, before, expand, center.has_value());
  if (quarters) {
    const Size turned{before.height, before.width};
    if (*quarters != 0) {
      draws.add(kTurnStep, *quarters % 2 ? turned : before, {double(*quarters)});
    }
    return;
  }
  Size size;
  const auto [a, b, c, d, e, f] = rotation_matrix(degrees, before, expand, center, size);
  set(draws.add(kAffineStep, size, {a, b, c, d, e, f}), options);
}

void add_perspective(Draws& draws, const std::array<double, 8>& coefficients,
                     const WarpOptions& options) {
  const auto [a, b, c, d, e, f, g, h] = coefficients;
  set(draws.add(kPerspectiveStep, {a, b, c, d, e, f, g, h}), options);
}

const PixelKind kKeepCentersStep{.name = "keep_centers",
                                 .values = {"x", "y", "width", "height"},
                                 .motion = Motion::keep_centers};
const PixelKind kClampBoxesStep{.name = "clamp_boxes", .motion = Motion::clamp};
const PixelKind kSanitizeBoxesStep{.name = "sanitize_boxes",
                                   .values = {"min_size", "min_area", "min_visibility"},
                                   .motion = Motion::sanitize};
const PixelKind kDropEmptyStep{.name = "drop_empty_boxes", .motion = Motion::drop_empty};

const PixelKind kBlendBeginStep{
    .name = "blend_begin", .values = {"weight"}, .motion = Motion::unknown};
const PixelKind kBlendStep{.name = "blend", .values = {"weight"}};
const PixelKind kBlendEndStep{.name = "blend_end"};
const PixelKind kBlendOverStep{.name = "blend_over", .values = {"weight"}};

}  // namespace stoker
