#include "decode/resize/planar_axis.h"

#include <algorithm>
#include <cmath>

// Vectors are members of classes here, and scalable ones cannot be (see resize_kernels.cc).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/resize/planar_axis.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/resize/filter_spans_inl.h"

#ifndef STOKER_PLANAR_AXIS_ONCE
#define STOKER_PLANAR_AXIS_ONCE
namespace stoker {

inline constexpr int kAxisUnit = 1 << 15;

// The result of a kernel. `strange`: the plain twin has to build this axis.
enum class AxisVerdict { built, refused, strange };

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

#if STOKER_DECODE_HAS_SPANS

// The pixels that are summed for an output, with those that round them up to whole samples and, for
// a triangle, the nearer halves of the neighbours.
inline constexpr int kMaxWindow = 2 * kMaxAxisTaps + 8;

// How samples become pixels: unchanged, by replication, or by a triangle.
enum class Kind { pixels, replicate, triangle };

inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Ints()));

HWY_INLINE Int load(const int32_t* from) { return hn::LoadU(Ints(), from); }

// The weights of the samples of some outputs, one after the other: sums of the weights of their
// pixels, in the order of the pixels.
template <Kind kKind>
class SampleWeights {
 public:
  // `pixels`: [pixel of the window][output], not yet normalized. `is_at_end`: an output may need
  // the plane's last sample.
  SampleWeights(const PlanarAxisKey& key, bool is_at_end, const double* pixels, Double normal,
                Int first_sample)
      : factor_(key.factor),
        is_at_end_(is_at_end),
        last_(key.plane_size - 1),
        pixels_(pixels),
        normal_(normal),
        number_(to_double(first_sample)) {}

  // REQUIRES: calls count k up from 0.
  Double of(int k) {
    if constexpr (kKind == Kind::pixels) return pixel(k);
    if constexpr (kKind == Kind::triangle) return of_triangle(k);
    Double sum = pixel(k * factor_);
    for (int j = 1; j < factor_; ++j) sum = hn::Add(sum, pixel(k * factor_ + j));
    return sum;
  }

 private:
  Double pixel(int j) const { return hn::Mul(hn::Load(Doubles(), pixels_ + j * kLanes), normal_); }
  static Double near(Double weight) { return hn::Mul(splat(0.75), weight); }
  static Double far(Double weight) { return hn::Mul(splat(0.25), weight); }

  // Pixels 2k + 1 and 2k + 2 of the window are the sample's own. The first and the last sample of a
  // plane are their own neighbours.
  Double of_triangle(int k) {
    if (k == 0) even_ = pixel(1);
    const Double odd = pixel(2 * k + 2), next_even = pixel(2 * k + 3);
    Double sum = hn::Add(far_before_, near(even_));
    if (k == 0) {
      const auto is_first = hn::Eq(number_, hn::Zero(Doubles()));
      sum = hn::Add(sum, hn::IfThenElseZero(is_first, far(even_)));
    }
    sum = hn::Add(sum, near(odd));
    far_before_ = far(odd);
    even_ = next_even;
    if (!is_at_end_) return hn::Add(sum, far(next_even));
    const auto is_last = hn::Eq(number_, splat(last_));
    sum = hn::Add(sum, hn::IfThenElse(is_last, far_before_, far(next_even)));
    sum = hn::IfThenElseZero(hn::Le(number_, splat(last_)), sum);
    number_ = hn::Add(number_, splat(1.0));
    return sum;
  }

  const int factor_;
  const bool is_at_end_;
  const double last_;  // the last sample of the plane
  const double* const pixels_;
  const Double normal_;
  Double number_;  // index of the sample in its plane
  Double even_ = hn::Zero(Doubles()), far_before_ = hn::Zero(Doubles());
};

// Computes the weights of as many outputs as a vector has lanes; [pixel or sample][output].
template <Kind kKind>
class AxisBuilder {
 public:
  AxisBuilder(const PlanarAxisKey& key, PlanarAxis& axis)
      : key_(key),
        axis_(axis),
        spans_(key.crop_size, key.resized, key.window_begin, key.window_count, key.mirrored, 1.0) {}

  AxisVerdict build() {
    if (!plan()) return AxisVerdict::strange;
    const Ints ints;
    Int begin = hn::Set(ints, key_.plane_size), end = hn::Zero(ints), most = end;
    for (int i = 0; i < axis_.padded_count; i += kLanes) {
      const Int sample = first_sample(i);
      const Double normal = weigh_pixels(i, sample);
      store(i, sample, round_samples({key_, is_at_end_, pixels_, normal, sample}));
      const Int first = load(axis_.first.data() + i), count = load(axis_.taps.data() + i);
      begin = hn::Min(begin, first);
      end = hn::Max(end, hn::Add(first, count));
      most = hn::Max(most, count);
    }
    axis_.source_begin = hn::GetLane(hn::MinOfLanes(ints, begin));
    axis_.source_end = hn::GetLane(hn::MaxOfLanes(ints, end));
    const bool fits = hn::GetLane(hn::MaxOfLanes(ints, most)) <= axis_.max_taps;
    return fits ? AxisVerdict::built : AxisVerdict::refused;
  }

 private:
  // Until an output's weights are made, axis.first and axis.taps have its pixels of the crop.
  bool plan() {
    const int pixels = spans_.fill(axis_.padded_count, axis_.first.data(), axis_.taps.data());
    const int first = key_.mirrored ? key_.window_count - 1 : 0;
    const int last = key_.window_count - 1 - first;
    axis_.last_pixel_end = key_.crop_begin + axis_.first[last] + axis_.taps[last];
    int window;
    if constexpr (kKind == Kind::triangle) {
      samples_ = pixels / 2 + 2;
      window = 2 * samples_ + 2;
      window_begin_ = key_.crop_begin + axis_.first[first] > 0 ? 2 : 1;
      window_end_ = pixels + 3;
      is_at_end_ = (axis_.last_pixel_end - 1) / 2 == key_.plane_size - 1;
    } else {
      samples_ = (pixels + 2 * key_.factor - 2) / key_.factor;
      window = key_.factor * samples_;
      window_end_ = pixels + key_.factor - 1;
    }
    if (window > kMaxWindow) return false;
    std::fill_n(pixels_, window_begin_ * kLanes, 0.0);
    std::fill(pixels_ + window_end_ * kLanes, pixels_ + window * kLanes, 0.0);
    std::fill_n(fixed_ + samples_ * kLanes, 3 * kLanes, 0);
    std::fill(axis_.weights.begin(), axis_.weights.end(), 0);
    return true;
  }

  Int first_sample(int i) const {
    const Int pixel = hn::Add(load(axis_.first.data() + i), hn::Set(Ints(), key_.crop_begin));
    // The neighbour of an even pixel is the sample before its own.
    if constexpr (kKind == Kind::triangle) {
      const Int sample = hn::ShiftRight<1>(hn::Sub(pixel, hn::Set(Ints(), 1)));
      return hn::Max(sample, hn::Zero(Ints()));
    } else if constexpr (kKind == Kind::replicate) {
      return to_int(hn::Div(to_double(pixel), splat(key_.factor)));
    } else {
      return pixel;
    }
  }

  // Computes the weights of pixels. Returns the factor that normalizes them.
  Double weigh_pixels(int i, Int first_sample) {
    const Double begin = to_double(load(axis_.first.data() + i));
    const Double end = hn::Add(begin, to_double(load(axis_.taps.data() + i)));
    Double pixel = begin;
    if constexpr (kKind != Kind::pixels) {
      const int before = key_.crop_begin - window_begin_ + (kKind == Kind::triangle ? 1 : 0);
      pixel = hn::Sub(hn::Mul(to_double(first_sample), splat(key_.factor)), splat(before));
    }
    const Double center_less_half = hn::Sub(spans_.centers(i), splat(0.5));
    const Double inverse = splat(spans_.inverse());
    Double sum = hn::Zero(Doubles());
    for (int j = window_begin_; j < window_end_; ++j, pixel = hn::Add(pixel, splat(1.0))) {
      const Double x = hn::Mul(hn::Sub(pixel, center_less_half), inverse);
      Double weight = hn::Max(hn::Sub(splat(1.0), hn::Abs(x)), hn::Zero(Doubles()));
      weight = hn::IfThenElseZero(hn::Lt(pixel, end), weight);
      if constexpr (kKind != Kind::pixels) {
        weight = hn::IfThenElseZero(hn::Ge(pixel, begin), weight);
      }
      hn::Store(weight, Doubles(), pixels_ + j * kLanes);
      sum = hn::Add(sum, weight);
    }
    return hn::Div(splat(1.0), sum);
  }

  // Rounds so that the sum stays one: every weight is a difference of rounded partial sums. Returns
  // the number of weights without the zeros at the end.
  Int round_samples(SampleWeights<kKind> weights) {
    const Ints ints;
    Double sum = hn::Zero(Doubles());
    Int before = hn::Zero(ints), taps = before;
    for (int k = 0; k < samples_; ++k) {
      sum = hn::Add(sum, weights.of(k));
      const Int upto = to_int(hn::Add(hn::Mul(sum, splat(kAxisUnit)), splat(0.5)));
      const Int fixed = hn::Min(hn::Sub(upto, before), hn::Set(ints, kAxisUnit - 1));
      before = upto;
      taps = hn::IfThenElse(hn::Eq(fixed, hn::Zero(ints)), taps, hn::Set(ints, k + 1));
      hn::Store(hn::Or(fixed, hn::ShiftLeft<16>(fixed)), ints, fixed_ + k * kLanes);
    }
    return taps;
  }

  void store(int i, Int sample, Int taps) {
    const Ints ints;
    hn::StoreU(sample, ints, axis_.first.data() + i);
    hn::StoreU(taps, ints, axis_.taps.data() + i);
    if (!hn::AllFalse(ints, hn::Eq(hn::Load(ints, fixed_), hn::Zero(ints)))) {
      for (int j = 0; j < kLanes; ++j) store_without_front(i + j, fixed_ + j);
      return;
    }
    // Goes from the last weights to the first: values past the end of a row land at the start of
    // the next row, which is written later.
    int32_t* to = axis_.weights.data() + ptrdiff_t{i} * axis_.max_taps;
    for (int k = (std::min(samples_, axis_.max_taps) - 1) / 4 * 4; k >= 0; k -= 4) {
      const int32_t* from = fixed_ + k * kLanes;
      store_rows(hn::Load(ints, from), hn::Load(ints, from + kLanes),
                 hn::Load(ints, from + 2 * kLanes), hn::Load(ints, from + 3 * kLanes), to + k,
                 axis_.max_taps);
    }
  }

  // Also drops the zeros at the start, which are rare.
  void store_without_front(int i, const int32_t* from) {
    while (axis_.taps[i] > 1 && *from == 0) {
      ++axis_.first[i];
      --axis_.taps[i];
      from += kLanes;
    }
    int32_t* to = axis_.weights.data() + ptrdiff_t{i} * axis_.max_taps;
    for (int t = 0; t < axis_.max_taps; ++t, from += kLanes) to[t] = t < axis_.taps[i] ? *from : 0;
  }

  const PlanarAxisKey& key_;
  PlanarAxis& axis_;
  const FilterSpans spans_;
  int samples_ = 0;  // the most of any output
  // The range of window pixels that any output sums.
  int window_begin_ = 0, window_end_ = 0;
  bool is_at_end_ = false;  // an output needs the plane's last sample
  HWY_ALIGN double pixels_[kMaxWindow * kMaxOutputs];
  HWY_ALIGN int32_t fixed_[kMaxWindow * kMaxOutputs];
};

AxisVerdict build(const PlanarAxisKey& key, PlanarAxis& axis) {
  if (key.factor == 1) return AxisBuilder<Kind::pixels>(key, axis).build();
  if (key.upsampling == Upsampling::triangle) {
    return AxisBuilder<Kind::triangle>(key, axis).build();
  }
  return AxisBuilder<Kind::replicate>(key, axis).build();
}

void find_group_taps(PlanarAxis& axis) {
  const hn::CappedTag<int32_t, kAxisGroup> ints;
  for (int i = 0; i < axis.padded_count; i += kAxisGroup) {
    auto most = hn::Zero(ints);
    for (int j = 0; j < kAxisGroup; j += static_cast<int>(hn::Lanes(ints))) {
      most = hn::Max(most, hn::LoadU(ints, axis.taps.data() + i + j));
    }
    axis.group_taps[i / kAxisGroup] = hn::GetLane(hn::MaxOfLanes(ints, most));
  }
}

#else

AxisVerdict build(const PlanarAxisKey&, PlanarAxis&) { return AxisVerdict::strange; }
void find_group_taps(PlanarAxis&) {}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(build);
HWY_EXPORT(find_group_taps);

bool lay_out_planar_axis(const PlanarAxisKey& key, PlanarAxis& axis) {
  const double support = std::max(static_cast<double>(key.crop_size) / key.resized, 1.0);
  if (2 * support + 2 >= 2 * kMaxAxisTaps) return false;
  const int pixels = 2 * static_cast<int>(std::ceil(support)) + 1;
  axis.max_taps = std::min(pixels / key.factor + (key.factor == 1 ? 0 : 3), kMaxAxisTaps);
  axis.padded_count = (key.window_count + kAxisGroup - 1) / kAxisGroup * kAxisGroup;
  const auto count = static_cast<size_t>(axis.padded_count);
  axis.first.resize(count);
  axis.taps.resize(count);
  axis.group_taps.resize(count / kAxisGroup);
  axis.weights.resize(count * axis.max_taps + kAxisSlack);
  return true;
}

bool build_planar_axis(const PlanarAxisKey& key, PlanarAxis& axis) {
  if (axis.key == key) return true;
  axis.key = {};
  if (!lay_out_planar_axis(key, axis)) return false;
  switch (HWY_DYNAMIC_DISPATCH(build)(key, axis)) {
    case AxisVerdict::refused:
      return false;
    case AxisVerdict::strange:
      return build_planar_axis_reference(key, axis);
    case AxisVerdict::built:
      break;
  }
  HWY_DYNAMIC_DISPATCH(find_group_taps)(axis);
  axis.key = key;
  return true;
}

int64_t PlanarAxis::scratch_bytes() const {
  return static_cast<int64_t>(first.capacity() + taps.capacity() + group_taps.capacity() +
                              weights.capacity()) *
         int64_t{sizeof(int32_t)};
}

}  // namespace stoker
#endif
