// The blend of Pillow's ImageEnhance for vectors. Included once per instruction set, after
// highway.h, by kernels of decode/pixel.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_BLEND_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_BLEND_INL_H
#undef STOKER_DECODE_BLEND_INL_H
#else
#define STOKER_DECODE_BLEND_INL_H
#endif

#include <algorithm>
#include <cstddef>

#include "decode/pixel/blend.h"
#include "decode/pixel/byte_table_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

HWY_INLINE void blend_floats(const uint8_t* degenerate, const uint8_t* values, float factor,
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

// Blends bytes by one factor.
class Blend {
 public:
  HWY_INLINE explicit Blend(float factor) : factor_(factor) {
#if HWY_TARGET == HWY_AVX3_DL
    has_tables_ = make_tables();
#endif
  }

  // Sets out[i] = blended(degenerate[i], values[i], factor), i < count. `out` may be `values`.
  HWY_INLINE void run(const uint8_t* degenerate, const uint8_t* values, size_t count,
                      uint8_t* out) const {
#if HWY_TARGET == HWY_AVX3_DL
    if (has_tables_) return look_up(degenerate, values, count, out);
#endif
    blend_floats(degenerate, values, factor_, count, out);
  }

 private:
#if HWY_TARGET == HWY_AVX3_DL
  // A byte is the degenerate one and a change, the factor times how far the value is above or below
  // it, so the changes are tables. A sum is rounded by less than 2^-16, which no byte shows if the
  // change is an integer or no nearer to one. Returns whether all are so.
  HWY_INLINE bool make_tables() {
    if (!(factor_ >= 0)) return false;
    const hn::CappedTag<float, 16> d;
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<uint8_t, decltype(d)> d8;
    const auto most = hn::Set(d, 255.0f), zero = hn::Zero(d);
    const auto least_rest = hn::Set(d, 0x1p-16f), most_rest = hn::Set(d, 1 - 0x1p-16f);
    for (size_t i = 0; i < up_.size(); i += hn::Lanes(d)) {
      const auto distance = hn::Iota(d, static_cast<float>(i));
      // Greater ones change a byte to the least or the greatest one.
      const auto change = hn::Min(hn::Mul(hn::Set(d, factor_), distance), most);
      const auto whole = hn::Floor(change), rest = hn::Sub(change, whole);
      const auto is_near =
          hn::Or(hn::And(hn::Gt(rest, zero), hn::Lt(rest, least_rest)), hn::Gt(rest, most_rest));
      if (!hn::AllFalse(d, is_near)) return false;
      const auto store = [&](auto changes, ByteTable& table) {
        hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(di, changes)), d8, table.data() + i);
      };
      store(whole, up_);
      store(hn::Ceil(change), down_);
    }
    return true;
  }

  HWY_INLINE void look_up(const uint8_t* degenerate, const uint8_t* values, size_t count,
                          uint8_t* out) const {
    const VectorTable up(up_), down(down_);
    for (size_t i = 0; i < count; i += kLanes) {
      const __mmask64 used =
          _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(std::min(count - i, kLanes)));
      const __m512i from = _mm512_maskz_loadu_epi8(used, degenerate + i);
      const __m512i to = _mm512_maskz_loadu_epi8(used, values + i);
      const __m512i distance =
          _mm512_sub_epi8(_mm512_max_epu8(from, to), _mm512_min_epu8(from, to));
      const __m512i more = _mm512_adds_epu8(from, up(distance));
      const __m512i less = _mm512_subs_epu8(from, down(distance));
      const __mmask64 is_below = _mm512_cmplt_epu8_mask(to, from);
      _mm512_mask_storeu_epi8(out + i, used, _mm512_mask_blend_epi8(is_below, more, less));
    }
  }

  bool has_tables_;
  ByteTable up_, down_;  // of the distance
#endif
  float factor_;
};

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
