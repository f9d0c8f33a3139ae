#include "decode/pillow_resize.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "decode/row_resizer.h"

namespace stoker {
namespace {

void require_sizes(ImageView crop_pixels, const CropSpec& spec, MutableImageView out) {
  if (is_sane(spec) && crop_pixels.width == spec.crop.width &&
      crop_pixels.height == spec.crop.height && out.width == spec.window.width &&
      out.height == spec.window.height) {
    return;
  }
  std::fprintf(stderr,
               "stoker: pillow resize: crop %dx%d of pixels %dx%d, window %dx%d of %dx%d into an "
               "output of %dx%d does not fit together\n",
               spec.crop.width, spec.crop.height, crop_pixels.width, crop_pixels.height,
               spec.window.width, spec.window.height, spec.resized.width, spec.resized.height,
               out.width, out.height);
  std::abort();
}

uint8_t clip(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

// One whole pass along x (step 3) or y (step = row bytes) for one output sample.
uint8_t sample(const uint8_t* source, ptrdiff_t step, const ResampleTable& table, int i) {
  int32_t sum = 1 << (kWeightBits - 1);
  for (int t = 0; t < table.taps[i]; ++t) {
    sum += source[(table.first[i] + t) * step] *
           table.weights[static_cast<size_t>(i) * table.max_taps + t];
  }
  return clip(sum);
}

}  // namespace

struct PillowResize::Impl {
  RowResizer resizer;
};

PillowResize::PillowResize() : impl_(std::make_unique<Impl>()) {}
PillowResize::~PillowResize() = default;

void PillowResize::run(ImageView crop_pixels, const CropSpec& spec, MutableImageView out) {
  require_sizes(crop_pixels, spec, out);
  const Box needed = impl_->resizer.begin(spec, out);
  impl_->resizer.rows(crop_pixels.data + needed.y * crop_pixels.stride_bytes + 3 * needed.x,
                      crop_pixels.stride_bytes, needed.height);
}

int64_t PillowResize::scratch_bytes() const { return impl_->resizer.scratch_bytes(); }

void pillow_resize_reference(ImageView crop_pixels, const CropSpec& spec, MutableImageView out) {
  require_sizes(crop_pixels, spec, out);
  ResampleTable across, down;
  build_resample_table_reference(
      {spec.crop.width, spec.resized.width, 0, spec.resized.width, false, spec.filter}, across);
  build_resample_table_reference(
      {spec.crop.height, spec.resized.height, 0, spec.resized.height, false, spec.filter}, down);
  const int width = spec.resized.width;
  const ptrdiff_t stride = 3 * static_cast<ptrdiff_t>(width);
  std::vector<uint8_t> rows(static_cast<size_t>(stride) * spec.crop.height);
  for (int y = 0; y < spec.crop.height; ++y) {
    const uint8_t* from = crop_pixels.data + y * crop_pixels.stride_bytes;
    for (int i = 0; i < 3 * width; ++i) {
      rows[y * stride + i] = across.identity ? from[i] : sample(from + i % 3, 3, across, i / 3);
    }
  }
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const int column = spec.window.x + (spec.flip ? out.width - 1 - x : x);
      for (int c = 0; c < 3; ++c) {
        const uint8_t* from = rows.data() + 3 * column + c;
        const int row = spec.window.y + y;
        out.data[y * out.stride_bytes + 3 * x + c] =
            down.identity ? from[row * stride] : sample(from, stride, down, row);
      }
    }
  }
}

}  // namespace stoker
