#include "train/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/cpu/kernel_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/cpu/batch_norm.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "train/cpu/activation_values_inl.h"

#ifndef STOKER_TRAIN_BATCH_NORM_COMMON
#define STOKER_TRAIN_BATCH_NORM_COMMON
namespace stoker {
namespace {

constexpr int kMostLanes = 16;

// A group is the fewest pixels that fill whole vectors together: values that belong to one channel
// are a group apart, so that a vector of a group needs one vector of numbers per channel, and no
// channel is left over.
int group_values(const PixelNormShape& s) { return std::lcm(s.channels, kMostLanes); }

void repeat(const PixelNormShape& s, float* values) {  // the channels' numbers over the group
  for (int i = s.channels; i < group_values(s); ++i) values[i] = values[i - s.channels];
}

void fold(const PixelNormShape& s, float* sums) {  // the group's sums into the channels'
  for (int i = s.channels; i < group_values(s); ++i) sums[i % s.channels] += sums[i];
}

float slope_of(const PixelNormShape& s, float variance) {
  return 1.0f / std::sqrt(variance + s.eps);
}

// output = (input - mean) * factor + shift, before the ReLU; each as long as a group.
struct NormLine {
  float *mean, *factor, *shift;

  NormLine(const PixelNormShape& s, const NormStatistics& statistics,
           const NormParameters& parameters, float* memory)
      : mean(memory), factor(mean + group_values(s)), shift(factor + group_values(s)) {
    for (int c = 0; c < s.channels; ++c) {
      mean[c] = statistics.mean[c];
      factor[c] = parameters.scale[c] * slope_of(s, statistics.variance[c]);
      shift[c] = parameters.shift[c];
    }
    for (float* values : {mean, factor, shift}) repeat(s, values);
  }
  static int floats(const PixelNormShape& s) { return 3 * group_values(s); }
};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::CappedTag<float, kMostLanes>;
using Single = hn::CappedTag<float, 1>;

// Calls visit(tag, place in the group, index of the value) for all values of the groups [first,
// end), and of the pixels behind the last whole group.
template <class Visit>
HWY_INLINE void for_values(const PixelNormShape& s, int64_t first, int64_t end,
                           const Visit& visit) {
  const int group = group_values(s);
  const Wide wide;
  for (int64_t g = first; g < end; ++g) {
    for (int i = 0; i < group; i += static_cast<int>(hn::Lanes(wide))) {
      visit(wide, i, g * group + i);
    }
  }
  const int64_t groups = s.pixels * s.channels / group;
  if (end < groups) return;
  for (int64_t i = groups * group; i < s.pixels * s.channels; ++i) {
    visit(Single(), static_cast<int>(i - groups * group), i);
  }
}

// Adds up over all values: add(tag, place, index) adds to `sums`, which are added to `totals` and
// cleared after a number of groups, so that few sums have many terms.
template <class Add>
HWY_INLINE void sum_values(const PixelNormShape& s, float* sums, float* totals, int count,
                           const Add& add) {
  constexpr int64_t kGroups = 64;
  const int64_t groups = s.pixels * s.channels / group_values(s);
  std::fill_n(totals, count, 0.0f);
  int64_t first = 0;
  do {
    const int64_t end = std::min(first + kGroups, groups);
    std::fill_n(sums, count, 0.0f);
    for_values(s, first, end, add);
    for (int i = 0; i < count; ++i) totals[i] += sums[i];
    first = end;
  } while (first < groups);
}

template <class D>
HWY_INLINE void add_to(D d, float* sum, hn::Vec<D> v) {
  hn::StoreU(hn::Add(hn::LoadU(d, sum), v), d, sum);
}

template <class Number>
void statistics_of(const PixelNormShape& s, const Number* input, const NormStatistics& to,
                   float* memory) {
  const int group = group_values(s);
  const float share = 1.0f / static_cast<float>(s.pixels);
  float *sums = memory, *totals = sums + group, *mean = totals + group;
  sum_values(s, sums, totals, group,
             [&](auto d, int place, int64_t i) { add_to(d, sums + place, load(d, input + i)); });
  fold(s, totals);
  for (int c = 0; c < s.channels; ++c) to.mean[c] = mean[c] = totals[c] * share;
  repeat(s, mean);
  sum_values(s, sums, totals, group, [&](auto d, int place, int64_t i) {
    const auto distance = hn::Sub(load(d, input + i), hn::LoadU(d, mean + place));
    add_to(d, sums + place, hn::Mul(distance, distance));
  });
  fold(s, totals);
  for (int c = 0; c < s.channels; ++c) to.variance[c] = totals[c] * share;
}

template <class D>
HWY_INLINE hn::Vec<D> on_line(D d, const NormLine& line, int place, hn::Vec<D> distance) {
  return hn::MulAdd(distance, hn::LoadU(d, line.factor + place), hn::LoadU(d, line.shift + place));
}

template <class Number>
void forward(const PixelNormShape& s, const Number* input, const NormStatistics& statistics,
             const NormParameters& parameters, Number* output, float* memory) {
  const NormLine line(s, statistics, parameters, memory);
  const int64_t groups = s.pixels * s.channels / group_values(s);
  for_values(s, 0, groups, [&](auto d, int place, int64_t i) {
    const auto distance = hn::Sub(load(d, input + i), hn::LoadU(d, line.mean + place));
    auto y = on_line(d, line, place, distance);
    if (s.relu) y = hn::Max(y, hn::Zero(d));
    store(d, y, output + i);
  });
}

template <class Number>
void backward(const PixelNormShape& s, const Number* input, const NormStatistics& statistics,
              const NormParameters& parameters, const NormGradients& gradients, float* memory) {
  const int group = group_values(s);
  const auto* dy = static_cast<const Number*>(gradients.output);
  auto* dx = static_cast<Number*>(gradients.input);
  const NormLine line(s, statistics, parameters, memory);
  float *sums = memory + NormLine::floats(s), *totals = sums + 2 * group;
  // The output's gradient before the ReLU, whose output is positive where the line is.
  const auto gradient = [&](auto d, int place, int64_t i, auto distance) {
    const auto g = load(d, dy + i);
    if (!s.relu) return g;
    return hn::IfThenElseZero(hn::Gt(on_line(d, line, place, distance), hn::Zero(d)), g);
  };
  // Sums of gradients, and of gradients times distances.
  sum_values(s, sums, totals, 2 * group, [&](auto d, int place, int64_t i) {
    const auto distance = hn::Sub(load(d, input + i), hn::LoadU(d, line.mean + place));
    const auto g = gradient(d, place, i, distance);
    add_to(d, sums + place, g);
    add_to(d, sums + group + place, hn::Mul(g, distance));
  });
  fold(s, totals);
  fold(s, totals + group);
  // dx = factor * g + slope * distance + constant
  float *slope = sums, *constant = sums + group;
  for (int c = 0; c < s.channels; ++c) {
    const float inverse = slope_of(s, statistics.variance[c]);
    const float share = line.factor[c] / static_cast<float>(s.pixels);
    gradients.shift[c] = totals[c];
    gradients.scale[c] = totals[group + c] * inverse;
    slope[c] = -share * gradients.scale[c] * inverse;
    constant[c] = -share * gradients.shift[c];
  }
  repeat(s, slope);
  repeat(s, constant);
  for_values(s, 0, s.pixels * s.channels / group, [&](auto d, int place, int64_t i) {
    const auto distance = hn::Sub(load(d, input + i), hn::LoadU(d, line.mean + place));
    const auto g = gradient(d, place, i, distance);
    const auto rest =
        hn::MulAdd(distance, hn::LoadU(d, slope + place), hn::LoadU(d, constant + place));
    store(d, hn::MulAdd(g, hn::LoadU(d, line.factor + place), rest), dx + i);
  });
}

void statistics_any(const PixelNormShape& s, const void* input, const NormStatistics& to,
                    float* memory) {
  if (s.precision == Precision::bf16) {
    statistics_of(s, static_cast<const uint16_t*>(input), to, memory);
  } else {
    statistics_of(s, static_cast<const float*>(input), to, memory);
  }
}

void forward_any(const PixelNormShape& s, const void* input, const NormStatistics& statistics,
                 const NormParameters& parameters, void* output, float* memory) {
  if (s.precision == Precision::bf16) {
    forward(s, static_cast<const uint16_t*>(input), statistics, parameters,
            static_cast<uint16_t*>(output), memory);
  } else {
    forward(s, static_cast<const float*>(input), statistics, parameters,
            static_cast<float*>(output), memory);
  }
}

void backward_any(const PixelNormShape& s, const void* input, const NormStatistics& statistics,
                  const NormParameters& parameters, const NormGradients& gradients, float* memory) {
  if (s.precision == Precision::bf16) {
    backward(s, static_cast<const uint16_t*>(input), statistics, parameters, gradients, memory);
  } else {
    backward(s, static_cast<const float*>(input), statistics, parameters, gradients, memory);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(statistics_any);
HWY_EXPORT(forward_any);
HWY_EXPORT(backward_any);

int64_t norm_scratch(const PixelNormShape& shape) { return int64_t{7} * group_values(shape); }

void norm_statistics(const PixelNormShape& shape, const void* input, const NormStatistics& to,
                     float* scratch) {
  HWY_DYNAMIC_DISPATCH(statistics_any)(shape, input, to, scratch);
}

void norm_forward(const PixelNormShape& shape, const void* input, const NormStatistics& statistics,
                  const NormParameters& parameters, void* output, float* scratch) {
  HWY_DYNAMIC_DISPATCH(forward_any)(shape, input, statistics, parameters, output, scratch);
}

void norm_backward(const PixelNormShape& shape, const void* input, const NormStatistics& statistics,
                   const NormParameters& parameters, const NormGradients& gradients,
                   float* scratch) {
  HWY_DYNAMIC_DISPATCH(backward_any)(shape, input, statistics, parameters, gradients, scratch);
}

}  // namespace stoker
#endif
