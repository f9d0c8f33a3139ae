#include "pipeline/augment/core_steps.h"

#include <algorithm>
#include <cstring>
#include <vector>

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
    .name = "crop", .values = {"x", "y", "width", "height"}, .moves = true, .make = crop};
const PixelKind kResizeStep{.name = "resize",
                            .values = {"width", "height"},
                            .choice = "filter",
                            .choices = kFilterNames,
                            .moves = true};
const PixelKind kFlipStep{.name = "flip", .moves = true, .change = flip};
const PixelKind kPadStep{.name = "pad",
                         .values = {"left", "top", "right", "bottom"},
                         .choice = "mode",
                         .choices = kPaddingNames,
                         .fill = true,
                         .moves = true,
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

}  // namespace stoker
