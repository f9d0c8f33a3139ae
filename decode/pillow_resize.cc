#include "decode/pillow_resize.h"

#include <cstdio>
#include <cstdlib>

#include "decode/resize/row_resizer.h"

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

}  // namespace

struct PillowResize::Impl {
  explicit Impl(PixelPolicy policy) : resizer(policy) {}
  RowResizer resizer;
};

PillowResize::PillowResize(PixelPolicy policy) : impl_(std::make_unique<Impl>(policy)) {}
PillowResize::~PillowResize() = default;

void PillowResize::run(ImageView crop_pixels, const CropSpec& spec, MutableImageView out) {
  require_sizes(crop_pixels, spec, out);
  const Box needed = impl_->resizer.begin(spec, out);
  impl_->resizer.rows(crop_pixels.data + needed.y * crop_pixels.stride_bytes + 3 * needed.x,
                      crop_pixels.stride_bytes, needed.height);
}

int64_t PillowResize::scratch_bytes() const { return impl_->resizer.scratch_bytes(); }

}  // namespace stoker
