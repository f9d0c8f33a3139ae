#include "decode/pixel/colour.h"

#include <cstddef>

#include "decode/pixel/byte_runs.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/colour.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/pixel/blend_inl.h"
#include "decode/pixel/planes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using LumaTag = hn::CappedTag<int32_t, 16>;

// Returns convert("L") of the pixels from `i` on: ITU-R 601 in 16 fractional bits.
HWY_INLINE hn::Vec<LumaTag> luma(const PixelPlanes& planes, size_t i) {
  const LumaTag d;
  const hn::Rebind<uint8_t, LumaTag> d8;
  const auto weighted = [&](const uint8_t* plane, int32_t weight) {
    return hn::Mul(hn::PromoteTo(d, hn::Load(d8, plane + i)), hn::Set(d, weight));
  };
  const auto red_green = hn::Add(weighted(planes.red, 19595), weighted(planes.green, 38470));
  const auto rounding = hn::Set(d, 0x8000);
  return hn::ShiftRight<16>(hn::Add(red_green, hn::Add(weighted(planes.blue, 7471), rounding)));
}

HWY_INLINE void make_grey(const PixelPlanes& planes, size_t count, uint8_t* grey) {
  const LumaTag d;
  const hn::Rebind<uint8_t, LumaTag> d8;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::Store(hn::DemoteTo(d8, luma(planes, i)), d8, grey + i);
  }
}

void grey_run(uint8_t* bytes, size_t byte_count) {
  alignas(64) uint8_t grey[PixelPlanes::kPixels];
  for_each_piece(bytes, byte_count, [&](uint8_t* pixels, size_t count, PixelPlanes& planes) {
    make_grey(planes, count, grey);
    join_pixels(grey, grey, grey, count, pixels);
  });
}

void permute_run(uint8_t* bytes, size_t byte_count, const std::array<int, 3>& from) {
  for_each_piece(bytes, byte_count, [&](uint8_t* pixels, size_t count, PixelPlanes& planes) {
    const uint8_t* const sources[] = {planes.red, planes.green, planes.blue};
    join_pixels(sources[from[0]], sources[from[1]], sources[from[2]], count, pixels);
  });
}

void saturate_run(uint8_t* bytes, size_t byte_count, float factor) {
  alignas(64) uint8_t grey[PixelPlanes::kPixels];
  for_each_piece(bytes, byte_count, [&](uint8_t* pixels, size_t count, PixelPlanes& planes) {
    make_grey(planes, count, grey);
    for (uint8_t* plane : {planes.red, planes.green, planes.blue}) {
      blend_bytes(grey, plane, factor, count, plane);
    }
    join_pixels(planes.red, planes.green, planes.blue, count, pixels);
  });
}

int64_t luma_sum(const uint8_t* bytes, size_t byte_count) {
  const LumaTag d;
  int64_t total = 0;
  for_each_piece(bytes, byte_count, [&](const uint8_t*, size_t count, const PixelPlanes& planes) {
    // The zeros behind the last pixel have no luma.
    auto sum = hn::Zero(d);
    for (size_t i = 0; i < count; i += hn::Lanes(d)) sum = hn::Add(sum, luma(planes, i));
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  });
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(grey_run);
HWY_EXPORT(permute_run);
HWY_EXPORT(saturate_run);
HWY_EXPORT(luma_sum);

namespace {

// Keeps some bits of every byte and then turns others over. Without AVX-512 VBMI a table takes five
// times longer; the compiler makes vectors of this loop for any processor.
void change_bits(MutableImageView image, uint8_t kept, uint8_t turned) {
  for_each_run(image, [=](uint8_t* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>((bytes[i] & kept) ^ turned);
  });
}

}  // namespace

void adjust_brightness(MutableImageView image, double factor) {
  apply_table(image, brightness_table(factor));
}

void adjust_contrast(MutableImageView image, double factor) {
  apply_table(image, blend_table(mean_luma(image), factor));
}

void adjust_saturation(MutableImageView image, double factor) {
  for_each_run(image, [&](uint8_t* bytes, size_t count) {
    HWY_DYNAMIC_DISPATCH(saturate_run)(bytes, count, blend_factor(factor));
  });
}

void grayscale(MutableImageView image) {
  for_each_run(image, [&](uint8_t* bytes, size_t count) {
    HWY_DYNAMIC_DISPATCH(grey_run)(bytes, count);
  });
}

void permute_channels(MutableImageView image, const std::array<int, 3>& from) {
  for_each_run(image, [&](uint8_t* bytes, size_t count) {
    HWY_DYNAMIC_DISPATCH(permute_run)(bytes, count, from);
  });
}

void invert(MutableImageView image) { change_bits(image, 0xff, 0xff); }

void posterize(MutableImageView image, int bits) {
  // The table maps 255 to the bits that stay.
  change_bits(image, posterize_table(bits)[255], 0);
}

void solarize(MutableImageView image, double threshold) {
  apply_table(image, solarize_table(threshold));
}

void adjust_gamma(MutableImageView image, double gamma) { apply_table(image, gamma_table(gamma)); }

int mean_luma(ImageView image) {
  int64_t sum = 0;
  for_each_run(image, [&](const uint8_t* bytes, size_t count) {
    sum += HWY_DYNAMIC_DISPATCH(luma_sum)(bytes, count);
  });
  const double count = static_cast<double>(image.width) * image.height;
  return count > 0 ? static_cast<int>(static_cast<double>(sum) / count + 0.5) : 0;
}

}  // namespace stoker
#endif
