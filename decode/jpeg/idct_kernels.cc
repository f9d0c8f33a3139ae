#include "decode/jpeg/idct_kernels.h"

#include <algorithm>

// The kernels rely on 128-bit blocks, which scalable vectors lack (decode/resize/resize_kernels.cc
// says more).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/idct_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/resize/transpose_inl.h"

#ifndef STOKER_IDCT_KERNELS_ONCE
#define STOKER_IDCT_KERNELS_ONCE
namespace stoker {

inline constexpr int kGroupStride = 8 * kBlockGroup;  // from a row of a group to the next
inline constexpr int kGroupSize = kBlockSize * kBlockGroup;

// The 13-bit constants of jidctint.c, multiplied out: the share of each input in each odd sum.
// libjpeg adds the same products in another order.
inline constexpr int kEven0 = 8192;
inline constexpr int kEven2[2] = {10703, 4433};                // of inputs 2, 6
inline constexpr int kEven6[2] = {4433, -10704};               // of inputs 2, 6
inline constexpr int kOdd[4][4] = {{11363, 9633, 6437, 2260},  // of inputs 1, 3, 5, 7
                                   {9633, -2259, -11362, -6436},
                                   {6437, -11362, 2261, 9633},
                                   {2260, -6436, 9633, -11363}};

inline constexpr int kFirstShift = 11;  // leaves two more bits than the result has
inline constexpr int kSecondShift = 18;
inline constexpr int16_t kFirstLimit = 1 << 14;
inline constexpr int kFirstBias = 1 << (kFirstShift - 1);
inline constexpr int kSecondBias = (128 << kSecondShift) + (1 << (kSecondShift - 1));

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

bool inverse(const int16_t* coefficients, int groups, const int16_t* quant, uint8_t* out) {
  return inverse_dct_reference(coefficients, groups, quant, out);
}

#else

using D16 = hn::CappedTag<int16_t, kGroupStride>;
using D32 = hn::RepartitionToWide<D16>;
using D8 = hn::Rebind<uint8_t, D16>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;

// Returns a * x + b * y for the pairs (x, y) of neighbouring lanes.
HWY_INLINE V32 weighted(V16 xy, int a, int b, V32 start) {
  const D32 d32;
  const uint32_t both = (static_cast<uint32_t>(a) & 0xffff) | static_cast<uint32_t>(b) << 16;
  const V16 weights = hn::BitCast(D16(), hn::Set(d32, static_cast<int32_t>(both)));
  V32 odd = hn::Zero(d32);
  const V32 even = hn::ReorderWidenMulAccumulate(d32, xy, weights, start, odd);
  return hn::RearrangeToOddPlusEven(even, odd);
}

// Computes half of a pass: eight outputs of half of the lanes, from interleaved pairs of inputs.
template <int kShift>
HWY_INLINE void half_pass(V16 in04, V16 in26, V16 in13, V16 in57, int bias, V32* out) {
  const D32 d32;
  const V32 zero = hn::Zero(d32);
  const V32 rounding = hn::Set(d32, bias);
  const V32 sum04 = hn::Add(weighted(in04, kEven0, kEven0, zero), rounding);
  const V32 diff04 = hn::Add(weighted(in04, kEven0, -kEven0, zero), rounding);
  const V32 sum26 = weighted(in26, kEven2[0], kEven2[1], zero);
  const V32 diff26 = weighted(in26, kEven6[0], kEven6[1], zero);
  const V32 even[4] = {hn::Add(sum04, sum26), hn::Add(diff04, diff26), hn::Sub(diff04, diff26),
                       hn::Sub(sum04, sum26)};
  for (int i = 0; i < 4; ++i) {
    const V32 odd = hn::Add(weighted(in13, kOdd[i][0], kOdd[i][1], zero),
                            weighted(in57, kOdd[i][2], kOdd[i][3], zero));
    out[i] = hn::ShiftRight<kShift>(hn::Add(even[i], odd));
    out[7 - i] = hn::ShiftRight<kShift>(hn::Sub(even[i], odd));
  }
}

// Computes one pass over all lanes: x[i] is input i, then output i.
template <int kShift>
HWY_INLINE void pass(V16* x, int bias) {
  const D16 d16;
  V32 lower[8], upper[8];
  half_pass<kShift>(hn::InterleaveLower(d16, x[0], x[4]), hn::InterleaveLower(d16, x[2], x[6]),
                    hn::InterleaveLower(d16, x[1], x[3]), hn::InterleaveLower(d16, x[5], x[7]),
                    bias, lower);
  half_pass<kShift>(hn::InterleaveUpper(d16, x[0], x[4]), hn::InterleaveUpper(d16, x[2], x[6]),
                    hn::InterleaveUpper(d16, x[1], x[3]), hn::InterleaveUpper(d16, x[5], x[7]),
                    bias, upper);
  for (int i = 0; i < 8; ++i) x[i] = hn::ReorderDemote2To(d16, lower[i], upper[i]);
}

// Stores every 8 bytes of `v` kBlockStride bytes further: the same column of the next block.
template <class D, class V>
HWY_INLINE void store_column(D d, V v, uint8_t* out) {
  if constexpr (hn::MaxLanes(D()) <= 8) {
    hn::StoreU(v, d, out);
  } else {
    const hn::Half<D> half;
    constexpr size_t kBlockStride = 8 * kStripRows;
    store_column(half, hn::LowerHalf(half, v), out);
    store_column(half, hn::UpperHalf(half, v), out + hn::MaxLanes(D()) / 16 * kBlockStride);
  }
}

bool inverse(const int16_t* coefficients, int groups, const int16_t* quant, uint8_t* out) {
  const D16 d16;
  V16 most = hn::Zero(d16), least = hn::Zero(d16);  // of the first pass
  const int lanes = static_cast<int>(hn::Lanes(d16));
  for (int g = 0; g < groups; ++g) {
    for (int part = 0; part < kGroupStride; part += lanes) {
      V16 x[8];
      for (int r = 0; r < 8; ++r) {
        x[r] = hn::Mul(hn::Load(d16, coefficients + r * kGroupStride + part),
                       hn::LoadDup128(d16, quant + 8 * r));
      }
      pass<kFirstShift>(x, kFirstBias);
      for (int i = 0; i < 8; ++i) {
        most = hn::Max(most, x[i]);
        least = hn::Min(least, x[i]);
      }
      transpose_8x8(D16(), x);
      pass<kSecondShift>(x, kSecondBias);
      for (int c = 0; c < 8; ++c) {
        store_column(D8(), hn::DemoteTo(D8(), x[c]), out + (part + c) * kStripRows);
      }
    }
    coefficients += kGroupSize;
    out += kGroupStride * kStripRows;
  }
  const V16 limit = hn::Set(d16, kFirstLimit);
  return hn::AllTrue(d16, hn::And(hn::Lt(most, limit), hn::Gt(least, hn::Not(limit))));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

// Computes one pass over eight numbers `stride` apart; results are clipped to 16 bits.
void plain_pass(int* x, int stride, int shift, int bias) {
  int in[8];
  for (int i = 0; i < 8; ++i) in[i] = x[i * stride];
  const int sum04 = kEven0 * (in[0] + in[4]) + bias, diff04 = kEven0 * (in[0] - in[4]) + bias;
  const int sum26 = kEven2[0] * in[2] + kEven2[1] * in[6];
  const int diff26 = kEven6[0] * in[2] + kEven6[1] * in[6];
  const int even[4] = {sum04 + sum26, diff04 + diff26, diff04 - diff26, sum04 - sum26};
  for (int i = 0; i < 4; ++i) {
    const int odd =
        kOdd[i][0] * in[1] + kOdd[i][1] * in[3] + kOdd[i][2] * in[5] + kOdd[i][3] * in[7];
    x[i * stride] = std::clamp((even[i] + odd) >> shift, -32768, 32767);
    x[(7 - i) * stride] = std::clamp((even[i] - odd) >> shift, -32768, 32767);
  }
}

}  // namespace

bool inverse_dct_reference(const int16_t* coefficients, int groups, const int16_t* quant,
                           uint8_t* out) {
  bool fits = true;
  for (int b = 0; b < groups * kBlockGroup; ++b, out += 8 * kStripRows) {
    const int16_t* block = coefficients + coefficient_offset(static_cast<size_t>(b));
    int x[kBlockSize];
    for (int i = 0; i < kBlockSize; ++i) {
      x[i] = static_cast<int16_t>(block[i / 8 * kGroupStride + i % 8] * quant[i]);
    }
    for (int c = 0; c < 8; ++c) plain_pass(x + c, 8, kFirstShift, kFirstBias);
    for (const int v : x) fits &= v >= -kFirstLimit && v < kFirstLimit;
    for (int r = 0; r < 8; ++r) plain_pass(x + 8 * r, 1, kSecondShift, kSecondBias);
    for (int i = 0; i < kBlockSize; ++i) {
      out[i % 8 * kStripRows + i / 8] = static_cast<uint8_t>(std::clamp(x[i], 0, 255));
    }
  }
  return fits;
}

HWY_EXPORT(inverse);

bool inverse_dct(const int16_t* coefficients, int groups, const int16_t* quant, uint8_t* out) {
  return HWY_DYNAMIC_DISPATCH(inverse)(coefficients, groups, quant, out);
}

}  // namespace stoker
#endif
