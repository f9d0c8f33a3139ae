// For byte_table_inl.h and planes_inl.h.
#define HWY_WANT_AVX3_DL

#include "decode/pixel/colour.h"

#include <cstddef>

#include "decode/pixel/byte_runs.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/colour.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/pixel/blend_inl.h"
#include "decode/pixel/planes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3_DL

// The weights of ITU-R 601 in 16 fractional bits are 19595, 38470 and 7471. A lane has red, green,
// blue and green again, of which each has half of its weight; so each weight is two signed bytes.
constexpr int lane_of(int red, int green, int blue) {
  const auto byte = [](int value, int place) {
    return static_cast<uint32_t>(value & 255) << (8 * place);
  };
  return static_cast<int>(byte(red, 0) | byte(green, 1) | byte(blue, 2) | byte(green, 3));
}
constexpr int kUpperWeights = lane_of(77, 75, 29), kLowerWeights = lane_of(-117, 35, 47);

HWY_INLINE void add_products(__m512i samples, __m512i weights, __m512i& sum) {
  // Not every compiler knows that the set has this instruction.
  asm("vpdpbusd %[weights], %[samples], %[sum]"
      : [sum] "+v"(sum)
      : [samples] "v"(samples), [weights] "v"(weights));
}

HWY_INLINE __m512i luma_of(__m512i samples) {
  __m512i upper = _mm512_setzero_si512(), lower = _mm512_set1_epi32(0x8000);
  add_products(samples, _mm512_set1_epi32(kUpperWeights), upper);
  add_products(samples, _mm512_set1_epi32(kLowerWeights), lower);
  return _mm512_srli_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), lower), 16);
}

// Sets convert("L") of the pixels.
HWY_INLINE void make_grey(const PixelPlanes& planes, size_t count, uint8_t* grey) {
  for (size_t i = 0; i < count; i += 64) {
    const __m512i r = _mm512_load_si512(planes.red + i), g = _mm512_load_si512(planes.green + i);
    const __m512i b = _mm512_load_si512(planes.blue + i);
    const __m512i rg0 = _mm512_unpacklo_epi8(r, g), rg1 = _mm512_unpackhi_epi8(r, g);
    const __m512i bg0 = _mm512_unpacklo_epi8(b, g), bg1 = _mm512_unpackhi_epi8(b, g);
    const __m512i first = _mm512_packus_epi32(luma_of(_mm512_unpacklo_epi16(rg0, bg0)),
                                              luma_of(_mm512_unpackhi_epi16(rg0, bg0)));
    const __m512i second = _mm512_packus_epi32(luma_of(_mm512_unpacklo_epi16(rg1, bg1)),
                                               luma_of(_mm512_unpackhi_epi16(rg1, bg1)));
    _mm512_store_si512(grey + i, _mm512_packus_epi16(first, second));
  }
}

#else

using LumaTag = hn::CappedTag<int32_t, 16>;

// Sets convert("L") of the pixels: ITU-R 601 in 16 fractional bits.
HWY_INLINE void make_grey(const PixelPlanes& planes, size_t count, uint8_t* grey) {
  const LumaTag d;
  const hn::Rebind<uint8_t, LumaTag> d8;
  const auto rounding = hn::Set(d, 0x8000);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto weighted = [&](const uint8_t* plane, int32_t weight) {
      return hn::Mul(hn::PromoteTo(d, hn::Load(d8, plane + i)), hn::Set(d, weight));
    };
    const auto red_green = hn::Add(weighted(planes.red, 19595), weighted(planes.green, 38470));
    const auto sum = hn::Add(red_green, hn::Add(weighted(planes.blue, 7471), rounding));
    hn::Store(hn::DemoteTo(d8, hn::ShiftRight<16>(sum)), d8, grey + i);
  }
}

#endif

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
  const Blend blend(factor);
  alignas(64) uint8_t grey[PixelPlanes::kPixels];
  for_each_piece(bytes, byte_count, [&](uint8_t* pixels, size_t count, PixelPlanes& planes) {
    make_grey(planes, count, grey);
    for (uint8_t* plane : {planes.red, planes.green, planes.blue}) {
      blend.run(grey, plane, count, plane);
    }
    join_pixels(planes.red, planes.green, planes.blue, count, pixels);
  });
}

int64_t luma_sum(const uint8_t* bytes, size_t byte_count) {
  alignas(64) uint8_t grey[PixelPlanes::kPixels];
  int64_t total = 0;
  for_each_piece(bytes, byte_count, [&](const uint8_t*, size_t count, const PixelPlanes& planes) {
    make_grey(planes, count, grey);
    uint32_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += grey[i];
    total += sum;
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
