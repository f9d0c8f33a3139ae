#include "tests/support/pillow_reference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "decode/resize/resample_table.h"

namespace stoker {
namespace {

uint8_t clip(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

// Returns output i of a table, from samples that are `step` apart.
uint8_t sample(const uint8_t* source, ptrdiff_t step, const ResampleTable& table, int i) {
  if (table.identity) return source[table.first[i] * step];
  int32_t sum = 1 << (kWeightBits - 1);
  for (int t = 0; t < table.taps[i]; ++t) {
    sum += source[(table.first[i] + t) * step] *
           table.weights[static_cast<size_t>(i) * table.max_taps + t];
  }
  return clip(sum);
}

struct Plane {
  Plane(int w, int h) : width(w), height(h), bytes(size_t{3} * w * h) {}
  uint8_t* at(int x, int y) { return bytes.data() + 3 * (ptrdiff_t{y} * width + x); }
  int width, height;
  std::vector<uint8_t> bytes;
};

Plane resized_across(Plane from, const ResampleTable& table) {
  Plane to(table.key.count, from.height);
  for (int y = 0; y < to.height; ++y) {
    for (int x = 0; x < to.width; ++x) {
      for (int c = 0; c < 3; ++c) to.at(x, y)[c] = sample(from.at(0, y) + c, 3, table, x);
    }
  }
  return to;
}

Plane resized_down(Plane from, const ResampleTable& table) {
  Plane to(from.width, table.key.count);
  const ptrdiff_t row = ptrdiff_t{3} * from.width;
  for (int y = 0; y < to.height; ++y) {
    for (int x = 0; x < to.width; ++x) {
      for (int c = 0; c < 3; ++c) to.at(x, y)[c] = sample(from.at(x, 0) + c, row, table, y);
    }
  }
  return to;
}

}  // namespace

void pillow_resize_reference(ImageView crop_pixels, const CropSpec& spec, MutableImageView out,
                             PixelPolicy policy) {
  ResampleTable across, down;
  build_resample_table_reference(
      {spec.crop.width, spec.resized.width, 0, spec.resized.width, false, spec.filter}, across);
  build_resample_table_reference(
      {spec.crop.height, spec.resized.height, 0, spec.resized.height, false, spec.filter}, down);
  Plane pixels(spec.crop.width, spec.crop.height);
  for (int y = 0; y < pixels.height; ++y) {
    std::copy_n(crop_pixels.data + y * crop_pixels.stride_bytes, 3 * pixels.width, pixels.at(0, y));
  }
  if (pass_order(policy, spec) == PassOrder::vertical_first) {
    pixels = resized_across(resized_down(std::move(pixels), down), across);
  } else {
    pixels = resized_down(resized_across(std::move(pixels), across), down);
  }
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const int column = spec.window.x + (spec.flip ? out.width - 1 - x : x);
      std::copy_n(pixels.at(column, spec.window.y + y), 3, out.data + y * out.stride_bytes + 3 * x);
    }
  }
}

}  // namespace stoker
