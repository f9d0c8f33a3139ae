// For byte_table_inl.h.
#define HWY_WANT_AVX3_DL

#include <cstddef>
#include <cstring>
#include <utility>

#include "decode/pixel/colour.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/sharpness.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/pixel/blend_inl.h"

#ifndef STOKER_PIXEL_SHARPNESS_COMMON
#define STOKER_PIXEL_SHARPNESS_COMMON
namespace stoker {
namespace {

// Three neighbouring rows, and the bytes of each.
struct SharpnessRows {
  const uint8_t *above, *here, *below;
  size_t bytes;
};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Sets smooth[i] for all pixels of the row but the outer two. The weights of SMOOTH are 1, and 5 in
// the middle, over 13. Pillow adds floats and rounds; a thirteenth is never in the middle between
// two integers, so that is the sum of integers plus 6, divided by 13.
void smooth_row(const SharpnessRows& rows, uint8_t* smooth) {
  const hn::CappedTag<uint16_t, 32> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d), end = rows.bytes - 3;
  const auto load = [&](const uint8_t* from) { return hn::PromoteTo(d, hn::LoadU(d8, from)); };
  const auto three = [&](const uint8_t* at) {
    return hn::Add(load(at), hn::Add(load(at - 3), load(at + 3)));
  };
  size_t i = 3;
  for (; i + lanes <= end; i += lanes) {
    const auto around = hn::Add(three(rows.above + i), three(rows.below + i));
    const auto middle = hn::ShiftLeft<2>(load(rows.here + i));
    const auto sum = hn::Add(hn::Add(around, three(rows.here + i)), middle);
    // 5042 / 2^16 is close enough to 1 / 13 for all sums up to 13 * 255.
    const auto rounded = hn::MulHigh(hn::Add(sum, hn::Set(d, 6)), hn::Set(d, 5042));
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(hn::RebindToSigned<decltype(d)>(), rounded)), d8,
               smooth + i);
  }
  for (; i < end; ++i) {
    int sum = 6 + 4 * rows.here[i];
    for (const uint8_t* row : {rows.above, rows.here, rows.below}) {
      sum += row[i - 3] + row[i] + row[i + 3];
    }
    smooth[i] = static_cast<uint8_t>(sum / 13);
  }
}

// `room`: of three rows.
void sharpen(MutableImageView image, float factor, uint8_t* room) {
  const Blend blend(factor);
  const size_t bytes = 3 * static_cast<size_t>(image.width);
  // The rows above and here as they were; the row below is still in the image.
  uint8_t *above = room, *here = above + bytes;
  uint8_t* const smooth = here + bytes;
  std::memcpy(above, image.data, bytes);
  for (int y = 1; y + 1 < image.height; ++y) {
    uint8_t* row = image.data + y * image.stride_bytes;
    std::memcpy(here, row, bytes);
    smooth_row({above, here, row + image.stride_bytes, bytes}, smooth);
    blend.run(smooth + 3, here + 3, bytes - 6, row + 3);
    std::swap(above, here);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(sharpen);

void adjust_sharpness(MutableImageView image, double factor, PixelScratch& scratch) {
  if (image.width < 3 || image.height < 3) return;
  uint8_t* const room = scratch.grow<uint8_t>(size_t{9} * static_cast<size_t>(image.width));
  HWY_DYNAMIC_DISPATCH(sharpen)(image, blend_factor(factor), room);
}

}  // namespace stoker
#endif
