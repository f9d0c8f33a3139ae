// Computes where Pillow's filter is on the source for several outputs of an axis at once. Included
// once per instruction set, after highway.h, by the files that make the weights of a resize.
//
// All values are double, in Pillow's order of operations, without fused operations: every
// instruction set gives the same bits.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_FILTER_SPANS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_FILTER_SPANS_INL_H
#undef STOKER_DECODE_FILTER_SPANS_INL_H
#else
#define STOKER_DECODE_FILTER_SPANS_INL_H
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// Machines without double in vectors, and scalable vectors, use the plain twins.
#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_RVV
#define STOKER_DECODE_HAS_SPANS 1

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int kMaxOutputs = 8;  // per vector; the padding of outputs is a multiple
using Doubles = hn::CappedTag<double, kMaxOutputs>;
using Ints = hn::Rebind<int32_t, Doubles>;
using Double = hn::Vec<Doubles>;
using Int = hn::Vec<Ints>;

HWY_INLINE Double to_double(Int v) { return hn::PromoteTo(Doubles(), v); }
HWY_INLINE Int to_int(Double v) { return hn::DemoteTo(Ints(), v); }  // towards zero
HWY_INLINE Double splat(double value) { return hn::Set(Doubles(), value); }

// Output i of `count` is pixel begin + i of the `resized` ones, or pixel begin + count - 1 - i if
// mirrored. Outputs past the last repeat it.
class FilterSpans {
 public:
  FilterSpans(int source, int resized, int begin, int count, bool mirrored, double reach)
      : source_(source),
        last_(count - 1),
        first_pixel_(mirrored ? begin + count - 1 : begin),
        step_(mirrored ? -1 : 1),
        scale_(static_cast<double>(static_cast<float>(source)) / resized),
        filter_scale_(std::max(scale_, 1.0)),
        support_(reach * filter_scale_),
        inverse_(1.0 / filter_scale_) {}

  double inverse() const { return inverse_; }  // 1 / the factor by which the filter is stretched

  // Returns the centers, on the source, of outputs i, i + 1, ...
  HWY_INLINE Double centers(int i) const {
    const Double output = hn::Min(hn::Iota(Doubles(), i), splat(last_));
    const Double pixel = hn::Add(splat(first_pixel_), hn::Mul(splat(step_), output));
    return hn::Mul(hn::Add(pixel, splat(0.5)), splat(scale_));
  }

  // Writes the first source pixel of every output and their number; returns the largest number.
  // `padded` is a multiple of kMaxOutputs.
  int fill(int padded, int32_t* first, int32_t* taps) const {
    const Ints ints;
    Int most = hn::Set(ints, 1);
    for (int i = 0; i < padded; i += static_cast<int>(hn::Lanes(ints))) {
      const Double center = centers(i);
      const Double from = hn::Add(hn::Sub(center, splat(support_)), splat(0.5));
      const Double to = hn::Add(hn::Add(center, splat(support_)), splat(0.5));
      const Int begin = hn::Max(hn::Zero(ints), to_int(from));
      const Int count = hn::Sub(hn::Min(hn::Set(ints, source_), to_int(to)), begin);
      hn::StoreU(begin, ints, first + i);
      hn::StoreU(count, ints, taps + i);
      most = hn::Max(most, count);
    }
    return hn::GetLane(hn::MaxOfLanes(ints, most));
  }

 private:
  int source_;
  double last_, first_pixel_, step_;
  double scale_, filter_scale_, support_, inverse_;
};

// Writes four values of every output to its row; rows are `stride` apart. In a row shorter than
// four, the extra values land in the next row, which is written afterwards: rows are written in
// order.
HWY_INLINE void store_rows(Int a, Int b, Int c, Int d, int32_t* rows, ptrdiff_t stride) {
  const Ints ints;
  HWY_ALIGN int32_t values[4 * kMaxOutputs];
  hn::StoreInterleaved4(a, b, c, d, ints, values);
  for (size_t j = 0; j < hn::MaxLanes(ints); ++j) {
    std::memcpy(rows + static_cast<ptrdiff_t>(j) * stride, values + 4 * j, 4 * sizeof(int32_t));
  }
}

#else
#define STOKER_DECODE_HAS_SPANS 0
#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
