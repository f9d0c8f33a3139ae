// Pillow's weighted sum of bytes (Resample.c), bit for bit, a vector of bytes at a time. Included
// once per instruction set, after highway.h.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_WEIGHTED_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_WEIGHTED_SUM_INL_H
#undef STOKER_DECODE_WEIGHTED_SUM_INL_H
#else
#define STOKER_DECODE_WEIGHTED_SUM_INL_H
#endif

#include "decode/resize/dot_product_inl.h"
#include "decode/resize/resample_table.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_RVV

namespace hn = hwy::HWY_NAMESPACE;

// Running sums of weights times samples, of 4 consecutive samples per 128-bit block. The high and
// the low part of a weight are separate, because a product of 8 x 23 bits does not fit 16-bit
// multipliers. The sums start at zero, because the targets differ in which lanes of the two
// accumulators belong to a sum.
template <class D8>
class PillowSums {
 public:
  using D16 = hn::Repartition<int16_t, D8>;
  using D32 = hn::Repartition<int32_t, D8>;
  using V16 = hn::Vec<D16>;
  using V32 = hn::Vec<D32>;
  HWY_INLINE PillowSums()
      : high_(hn::Zero(D32())),
        high_odd_(hn::Zero(D32())),
        low_(hn::Zero(D32())),
        low_odd_(hn::Zero(D32())) {}
  HWY_INLINE void add(V16 samples, V16 high_weights, V16 low_weights) {
    high_ = add_products(D32(), samples, high_weights, high_, high_odd_);
    low_ = add_products(D32(), samples, low_weights, low_, low_odd_);
  }
  HWY_INLINE V32 value() const {
    const V32 high = hn::RearrangeToOddPlusEven(high_, high_odd_);
    const V32 low = hn::RearrangeToOddPlusEven(low_, low_odd_);
    const V32 rounded = hn::Add(low, hn::Set(D32(), 1 << (kWeightBits - 1)));
    return hn::ShiftRight<kWeightBits>(hn::Add(hn::ShiftLeft<kLowWeightBits>(high), rounded));
  }

 private:
  V32 high_, high_odd_, low_, low_odd_;
};

// Packs 16-bit sums of bytes 0..7 and of bytes 8..15 of every block into bytes, clipped to 0..255.
template <bool kClips, class D8, class V16>
HWY_INLINE hn::Vec<D8> pack_bytes(D8 d8, V16 first, V16 second) {
  if constexpr (kClips) {
    const hn::Repartition<int16_t, D8> d16;
    const auto zero = hn::Zero(d16);
    const auto most = hn::Set(d16, 255);
    first = hn::Min(hn::Max(first, zero), most);
    second = hn::Min(hn::Max(second, zero), most);
  }
  const auto mixed = hn::Or(first, hn::ShiftLeft<8>(second));
  alignas(16) static constexpr uint8_t kUnmix[16] = {0, 2, 4, 6, 8, 10, 12, 14,
                                                     1, 3, 5, 7, 9, 11, 13, 15};
  return hn::TableLookupBytes(hn::BitCast(d8, mixed), hn::LoadDup128(d8, kUnmix));
}

// Adds two more taps of 4 * 4 samples per block.
template <class D8, class V8>
HWY_INLINE void add_taps(D8 d8, V8 even, V8 odd, const int32_t* pair, PillowSums<D8>* sums) {
  const hn::Repartition<int16_t, D8> d16;
  const hn::Repartition<int32_t, D8> d32;
  const auto zero = hn::Zero(d8);
  const auto high = hn::BitCast(d16, hn::Set(d32, pair[0]));
  const auto low = hn::BitCast(d16, hn::Set(d32, pair[1]));
  const auto lower = hn::InterleaveLower(d8, even, odd);
  const auto upper = hn::InterleaveUpper(d8, even, odd);
  sums[0].add(hn::BitCast(d16, hn::InterleaveLower(d8, lower, zero)), high, low);
  sums[1].add(hn::BitCast(d16, hn::InterleaveUpper(d8, lower, zero)), high, low);
  sums[2].add(hn::BitCast(d16, hn::InterleaveLower(d8, upper, zero)), high, low);
  sums[3].add(hn::BitCast(d16, hn::InterleaveUpper(d8, upper, zero)), high, low);
}

// Whether a vector has room for all the bytes of a D8 as 16-bit numbers.
template <class D8>
constexpr bool kHasWider = 2 * hn::MaxLanes(D8()) <= HWY_MAX_BYTES&& HWY_MAX_BYTES >= 64;

// The same for four samples per block of twice as many blocks; `even` and `odd` have half the
// blocks.
template <class D8, class V8>
HWY_INLINE void add_wide_taps(D8 d8, V8 even, V8 odd, const int32_t* pair,
                              PillowSums<hn::Twice<D8>>* sums) {
  const hn::Rebind<uint16_t, D8> d16;
  const hn::RebindToSigned<decltype(d16)> signed16;
  const hn::RepartitionToWide<decltype(signed16)> d32;
  const auto high = hn::BitCast(signed16, hn::Set(d32, pair[0]));
  const auto low = hn::BitCast(signed16, hn::Set(d32, pair[1]));
  const auto add = [&](V8 bytes, PillowSums<hn::Twice<D8>>& sum) HWY_ATTR {
    sum.add(hn::BitCast(signed16, hn::PromoteTo(d16, bytes)), high, low);
  };
  add(hn::InterleaveLower(d8, even, odd), sums[0]);
  add(hn::InterleaveUpper(d8, even, odd), sums[1]);
}

// Returns a vector of bytes: the weighted sum of `taps` vectors; load(t) returns the t-th. `pairs`
// are the output's in a ResampleTable. Bilinear sums cannot be above 255 or below 0; kClips is for
// the other filters.
template <bool kClips, class D8, class Load>
HWY_INLINE hn::Vec<D8> weighted_sum(D8 d8, const Load& load, int taps, const int32_t* pairs) {
  int t = 0;
  if constexpr (kHasWider<D8>) {
    PillowSums<hn::Twice<D8>> sums[2];
    for (; t + 1 < taps; t += 2, pairs += 2) add_wide_taps(d8, load(t), load(t + 1), pairs, sums);
    if (t < taps) add_wide_taps(d8, load(t), hn::Zero(d8), pairs, sums);
    // The lower sums of a block of bytes are 0 to 7, the upper ones 8 to 15, four in a block.
    const hn::Rebind<int16_t, D8> d16;
    const auto packed =
        hn::DemoteTo(d8, hn::ReorderDemote2To(d16, sums[0].value(), sums[1].value()));
    alignas(16) static constexpr uint8_t kUnmix[16] = {0, 1, 2, 3, 8,  9,  10, 11,
                                                       4, 5, 6, 7, 12, 13, 14, 15};
    return hn::TableLookupBytes(packed, hn::LoadDup128(d8, kUnmix));
  } else {
    const hn::Repartition<int16_t, D8> d16;
    PillowSums<D8> sums[4];
    for (; t + 1 < taps; t += 2, pairs += 2) add_taps(d8, load(t), load(t + 1), pairs, sums);
    if (t < taps) add_taps(d8, load(t), hn::Zero(d8), pairs, sums);
    return pack_bytes<kClips>(d8, hn::ReorderDemote2To(d16, sums[0].value(), sums[1].value()),
                              hn::ReorderDemote2To(d16, sums[2].value(), sums[3].value()));
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
