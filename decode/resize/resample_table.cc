#include "decode/resize/resample_table.h"

// Vectors are stored in arrays here, and scalable ones cannot be (see resize_kernels.cc).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/resize/resample_table.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/resize/filter_spans_inl.h"

#ifndef STOKER_RESAMPLE_TABLE_ONCE
#define STOKER_RESAMPLE_TABLE_ONCE
namespace stoker {

// Tables with more taps are rare; the plain twin makes them.
inline constexpr int kMaxFastTaps = 256;

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

#if STOKER_DECODE_HAS_SPANS

HWY_INLINE Double triangle(Double x) {
  return hn::Max(hn::Sub(splat(1.0), hn::Abs(x)), hn::Zero(Doubles()));
}

HWY_INLINE Double cubic(Double x) {
  constexpr double a = -0.5;
  x = hn::Abs(x);
  const Double cubed = hn::Mul(hn::Sub(hn::Mul(splat(a + 2.0), x), splat(a + 3.0)), x);
  const Double near = hn::Add(hn::Mul(cubed, x), splat(1.0));
  const Double inner = hn::Add(hn::Mul(hn::Sub(x, splat(5.0)), x), splat(8.0));
  const Double far = hn::Mul(hn::Sub(hn::Mul(inner, x), splat(4.0)), splat(a));
  return hn::IfThenElse(hn::Lt(x, splat(1.0)), near,
                        hn::IfThenElseZero(hn::Lt(x, splat(2.0)), far));
}

HWY_INLINE Int to_fixed(Double weight) {
  const Double scaled = hn::Mul(weight, splat(1 << kWeightBits));
  return to_int(hn::Add(scaled, hn::CopySign(splat(0.5), scaled)));
}

// Joins the weights of two taps in one lane; of negative ones the low half only.
HWY_INLINE Int join(Int even, Int odd) {
  return hn::Or(hn::And(even, hn::Set(Ints(), 0xffff)), hn::ShiftLeft<16>(odd));
}

HWY_INLINE Double box(Double x) {
  const auto is_inside = hn::And(hn::Gt(x, splat(-0.5)), hn::Le(x, splat(0.5)));
  return hn::IfThenElseZero(is_inside, splat(1.0));
}

// The filters that are made here; the plain twin makes the others, which need a sine per weight or
// none at all.
template <Filter kFilter>
HWY_INLINE Double kernel(Double x) {
  if constexpr (kFilter == Filter::bilinear) return triangle(x);
  if constexpr (kFilter == Filter::box) return box(x);
  return cubic(x);
}

// Returns how far the kernel reaches; 0 for the filters of the plain twin.
double reach_of(Filter filter) {
  if (filter == Filter::bilinear) return 1.0;
  if (filter == Filter::bicubic) return 2.0;
  return filter == Filter::box ? 0.5 : 0.0;
}

// Computes the weights: tap t of all outputs of a vector is at weights + t * lanes. Returns the
// sums.
template <Filter kFilter>
HWY_INLINE Double exact_weights(const FilterSpans& spans, const ResampleTable& table, int i,
                                double* weights) {
  const Double center = spans.centers(i);
  const Double inverse = splat(spans.inverse());
  Double pixel = to_double(hn::LoadU(Ints(), table.first.data() + i));
  const Double end = hn::Add(pixel, to_double(hn::LoadU(Ints(), table.taps.data() + i)));
  Double sum = hn::Zero(Doubles());
  for (int t = 0; t < table.max_taps; ++t, weights += hn::Lanes(Doubles())) {
    const Double x = hn::Mul(hn::Add(hn::Sub(pixel, center), splat(0.5)), inverse);
    const Double weight = hn::IfThenElseZero(hn::Lt(pixel, end), kernel<kFilter>(x));
    hn::Store(weight, Doubles(), weights);
    sum = hn::Add(sum, weight);
    pixel = hn::Add(pixel, splat(1.0));
  }
  return hn::IfThenElse(hn::Eq(sum, hn::Zero(Doubles())), splat(1.0), sum);
}

// Goes from the last taps to the first: values past the end of a row land at the start of the next
// row, which is written later.
HWY_INLINE void store_weights(const double* weights, Double sum, int row, ResampleTable& table) {
  const ptrdiff_t stride = table.max_taps, pair_stride = 2 * ptrdiff_t{table.pair_count()};
  int32_t* to = table.weights.data() + row * stride;
  int32_t* pairs = table.pairs.data() + row * pair_stride;
  const Int low_mask = hn::Set(Ints(), (1 << kLowWeightBits) - 1);
  for (int t = (table.max_taps - 1) / 4 * 4; t >= 0; t -= 4) {
    const auto fixed = [&](int k) HWY_ATTR {
      if (t + k >= table.max_taps) return hn::Zero(Ints());
      const double* exact = weights + static_cast<size_t>(t + k) * hn::Lanes(Doubles());
      return to_fixed(hn::Div(hn::Load(Doubles(), exact), sum));
    };
    const Int w[4] = {fixed(0), fixed(1), fixed(2), fixed(3)};
    store_rows(w[0], w[1], w[2], w[3], to + t, stride);
    const auto high = [&](int k) HWY_ATTR {
      return join(hn::ShiftRight<kLowWeightBits>(w[k]), hn::ShiftRight<kLowWeightBits>(w[k + 1]));
    };
    const auto low = [&](int k) HWY_ATTR {
      return join(hn::And(w[k], low_mask), hn::And(w[k + 1], low_mask));
    };
    store_rows(high(0), low(0), high(2), low(2), pairs + t, pair_stride);
  }
}

template <Filter kFilter>
void fill_weights(const FilterSpans& spans, int padded, ResampleTable& table) {
  const int lanes = static_cast<int>(hn::Lanes(Doubles()));
  HWY_ALIGN double weights[kMaxFastTaps * kMaxOutputs];
  for (int i = 0; i < padded; i += lanes) {
    const Double sum = exact_weights<kFilter>(spans, table, i, weights);
    store_weights(weights, sum, i, table);
  }
}

bool fill(ResampleTable& table) {
  const ResampleKey& key = table.key;
  const double reach = reach_of(key.filter);
  if (reach == 0.0) return false;
  const FilterSpans spans(key.source, key.resized, key.begin, key.count, key.mirrored, reach);
  const int padded = (key.count + kMaxOutputs - 1) / kMaxOutputs * kMaxOutputs;
  table.first.resize(static_cast<size_t>(padded));
  table.taps.resize(static_cast<size_t>(padded));
  table.max_taps = spans.fill(padded, table.first.data(), table.taps.data());
  if (table.max_taps > kMaxFastTaps) return false;
  // Both ends grow with the output pixel, so the window's ends bound the source.
  const auto begin = static_cast<size_t>(key.mirrored ? key.count - 1 : 0);
  const auto end = static_cast<size_t>(key.mirrored ? 0 : key.count - 1);
  table.source_begin = table.first[begin];
  table.source_end = table.first[end] + table.taps[end];
  table.weights.resize(static_cast<size_t>(padded) * table.max_taps + 3);
  table.pairs.resize(static_cast<size_t>(padded) * table.pair_count() * 2 + 3);
  if (key.filter == Filter::bilinear) {
    fill_weights<Filter::bilinear>(spans, padded, table);
  } else if (key.filter == Filter::box) {
    fill_weights<Filter::box>(spans, padded, table);
  } else {
    fill_weights<Filter::bicubic>(spans, padded, table);
  }
  return true;
}

#else

bool fill(ResampleTable&) { return false; }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(fill);

void build_resample_table(const ResampleKey& key, ResampleTable& table) {
  if (table.key == key) return;
  if (key.source != key.resized) {
    table.key = key;
    table.identity = false;
    if (HWY_DYNAMIC_DISPATCH(fill)(table)) return;
  }
  build_resample_table_reference(key, table);
}

void build_resample_tables(const CropSpec& spec, ResampleTable& across, ResampleTable& down) {
  build_resample_table({spec.crop.width, spec.resized.width, spec.window.x, spec.window.width,
                        spec.flip, spec.filter},
                       across);
  build_resample_table({spec.crop.height, spec.resized.height, spec.window.y, spec.window.height,
                        false, spec.filter},
                       down);
}

int64_t ResampleTable::scratch_bytes() const {
  return static_cast<int64_t>((first.capacity() + taps.capacity() + weights.capacity() +
                               pairs.capacity() + quads.capacity()) *
                                  sizeof(int32_t) +
                              exact.capacity() * sizeof(double));
}

}  // namespace stoker
#endif
