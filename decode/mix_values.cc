#include "decode/pixel_ops.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/mix_values.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The weighted mean is other + (share * (own - other) + kMixParts / 2) / kMixParts, rounded down.
// That quotient is what the instructions for products of 15-bit fractions compute.
uint8_t mean_of(int share, int own, int other) {
  return static_cast<uint8_t>(other + ((share * (own - other) + kMixParts / 2) >> 15));
}

void mix(int share, const uint8_t* other, size_t count, uint8_t* own) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<int16_t> wide;
  const hn::Rebind<uint8_t, decltype(wide)> narrow;
  const auto weight = hn::Set(wide, static_cast<int16_t>(share));
  const size_t lanes = hn::Lanes(wide);
  for (; i + lanes <= count; i += lanes) {
    const auto a = hn::PromoteTo(wide, hn::LoadU(narrow, own + i));
    const auto b = hn::PromoteTo(wide, hn::LoadU(narrow, other + i));
    const auto mean = hn::Add(b, hn::MulFixedPoint15(hn::Sub(a, b), weight));
    hn::StoreU(hn::DemoteTo(narrow, mean), narrow, own + i);
  }
#endif
  for (; i < count; ++i) own[i] = mean_of(share, own[i], other[i]);
}

void mix_two(int first_share, uint8_t* first, int second_share, uint8_t* second, size_t count) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<int16_t> wide;
  const hn::Rebind<uint8_t, decltype(wide)> narrow;
  const auto first_weight = hn::Set(wide, static_cast<int16_t>(first_share));
  const auto second_weight = hn::Set(wide, static_cast<int16_t>(second_share));
  const size_t lanes = hn::Lanes(wide);
  for (; i + lanes <= count; i += lanes) {
    const auto a = hn::PromoteTo(wide, hn::LoadU(narrow, first + i));
    const auto b = hn::PromoteTo(wide, hn::LoadU(narrow, second + i));
    const auto new_a = hn::Add(b, hn::MulFixedPoint15(hn::Sub(a, b), first_weight));
    const auto new_b = hn::Add(a, hn::MulFixedPoint15(hn::Sub(b, a), second_weight));
    hn::StoreU(hn::DemoteTo(narrow, new_a), narrow, first + i);
    hn::StoreU(hn::DemoteTo(narrow, new_b), narrow, second + i);
  }
#endif
  for (; i < count; ++i) {
    const uint8_t a = first[i], b = second[i];
    first[i] = mean_of(first_share, a, b);
    second[i] = mean_of(second_share, b, a);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(mix);
HWY_EXPORT(mix_two);

void mix_values(int share, const uint8_t* other, size_t count, uint8_t* own) {
  // A whole share does not fit into 16 bits.
  if (share == kMixParts) return;
  HWY_DYNAMIC_DISPATCH(mix)(share, other, count, own);
}

void mix_each_other(int first_share, uint8_t* first, int second_share, uint8_t* second,
                    size_t count) {
  // A whole share leaves its row as it is, so that the other can be mixed alone.
  if (first_share == kMixParts) return mix_values(second_share, first, count, second);
  if (second_share == kMixParts) return mix_values(first_share, second, count, first);
  HWY_DYNAMIC_DISPATCH(mix_two)(first_share, first, second_share, second, count);
}

}  // namespace stoker
#endif
