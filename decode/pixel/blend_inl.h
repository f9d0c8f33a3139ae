// The blend of Pillow's ImageEnhance for vectors. Included once per instruction set, after
// highway.h, by kernels of decode/pixel.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_BLEND_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_BLEND_INL_H
#undef STOKER_DECODE_BLEND_INL_H
#else
#define STOKER_DECODE_BLEND_INL_H
#endif

#include "decode/pixel/blend.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// Sets out[i] = blended(degenerate[i], values[i], factor), i < count. `out` may be `values`.
HWY_INLINE void blend_bytes(const uint8_t* degenerate, const uint8_t* values, float factor,
                            size_t count, uint8_t* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<uint8_t, decltype(df)> d8;
  const auto f = hn::Set(df, factor), least = hn::Zero(df), most = hn::Set(df, 255.0f);
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto from = hn::PromoteTo(di, hn::LoadU(d8, degenerate + i));
    const auto to = hn::PromoteTo(di, hn::LoadU(d8, values + i));
    const auto change = hn::Mul(f, hn::ConvertTo(df, hn::Sub(to, from)));
    const auto mixed = hn::Add(hn::ConvertTo(df, from), change);
    const auto clipped = hn::Min(hn::Max(mixed, least), most);
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(di, clipped)), d8, out + i);
  }
  for (; i < count; ++i) out[i] = blended(degenerate[i], values[i], factor);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
