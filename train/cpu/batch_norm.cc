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

constexpr int kMaxLanes = 16;

// A group is the fewest pixels that fill whole vectors together: values that belong to one channel
// are a group apart, so that a vector of a group needs one vector of numbers per channel, and no
// channel is left over.
int group_values(const PixelNormShape& s) { return std::lcm(s.channels, kMaxLanes); }

void repeat(const PixelNormShape& s, float* values) {  // the channels' numbers over the group
  for (int i = s.channels; i < group_values(s); ++i) values[i] = values[i - s.channels];
}

void fold(const PixelNormShape& s, float* sums) {  // the group's sums into the channels'
  for (int i = s.channels; i < group_values(s); ++i) sums[i % s.channels] += sums[i];
}

// output = (input - mean) * factor + shift, before the ReLU; these three are as long as a group.
struct NormLine {
  float *mean, *factor, *shift;
  float* inverse;  // of the deviations; per channel

  // The line that the memory holds.
  NormLine(const PixelNormShape& s, float* memory)
      : mean(memory),
        factor(mean + group_values(s)),
        shift(factor + group_values(s)),
        inverse(shift + group_values(s)) {}
  // Writes a line into the memory.
  NormLine(const PixelNormShape& s, const NormStatistics& statistics,
           const NormParameters& parameters, float* memory)
      : NormLine(s, memory) {
    for (int c = 0; c < s.channels; ++c) {
      inverse[c] = 1.0f / std::sqrt(statistics.variance[c] + s.eps);
      mean[c] = statistics.mean[c];
      factor[c] = parameters.scale[c] * inverse[c];
      shift[c] = parameters.shift[c];
    }
    for (float* values : {mean, factor, shift}) repeat(s, values);
  }
  static int floats(const PixelNormShape& s) { return 4 * group_values(s); }
};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::CappedTag<float, kMaxLanes>;
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

// Returns the output's gradient before the ReLU, whose output is positive where the line is.
template <class D>
HWY_INLINE hn::Vec<D> before_relu(D d, const PixelNormShape& s, const NormLine& line, int place,
                                  hn::Vec<D> distance, hn::Vec<D> gradient) {
  if (!s.relu) return gradient;
  return hn::IfThenElseZero(hn::Gt(on_line(d, line, place, distance), hn::Zero(d)), gradient);
}

template <class Number>
void parameter_gradients(const PixelNormShape& s, const Number* input,
                         const NormStatistics& statistics, const NormParameters& parameters,
                         const Number* dy, const NormGradients& to, float* memory) {
  const int group = group_values(s);
  const NormLine line(s, statistics, parameters, memory);
  float *sums = memory + NormLine::floats(s), *totals = sums + 2 * group;
  // Sums of gradients, and of gradients times distances.
  sum_values(s, sums, totals, 2 * group, [&](auto d, int place, int64_t i) {
    const auto distance = hn::Sub(load(d, input + i), hn::LoadU(d, line.mean + place));
    const auto g = before_relu(d, s, line, place, distance, load(d, dy + i));
    add_to(d, sums + place, g);
    add_to(d, sums + group + place, hn::Mul(g, distance));
  });
  fold(s, totals);
  fold(s, totals + group);
  for (int c = 0; c < s.channels; ++c) {
    to.shift[c] = totals[c];
    to.scale[c] = totals[group + c] * line.inverse[c];
  }
}

template <class Number>
void input_gradient(const PixelNormShape& s, const Number* input, const Number* dy,
                    const NormGradients& of, int64_t pixels, Number* dx, float* memory) {
  const int group = group_values(s);
  const NormLine line(s, memory);
  // dx = factor * g + slope * distance + constant
  float *slope = memory + NormLine::floats(s), *constant = slope + group;
  for (int c = 0; c < s.channels; ++c) {
    const float share = line.factor[c] / static_cast<float>(pixels);
    slope[c] = -share * of.scale[c] * line.inverse[c];
    constant[c] = -share * of.shift[c];
  }
  repeat(s, slope);
  repeat(s, constant);
  for_values(s, 0, s.pixels * s.channels / group, [&](auto d, int place, int64_t i) {
    const auto distance = hn::Sub(load(d, input + i), hn::LoadU(d, line.mean + place));
    const auto g = before_relu(d, s, line, place, distance, load(d, dy + i));
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

void parameter_gradients_any(const PixelNormShape& s, const void* input,
                             const NormStatistics& statistics, const NormParameters& parameters,
                             const void* gradient, const NormGradients& to, float* memory) {
  if (s.precision == Precision::bf16) {
    parameter_gradients(s, static_cast<const uint16_t*>(input), statistics, parameters,
                        static_cast<const uint16_t*>(gradient), to, memory);
  } else {
    parameter_gradients(s, static_cast<const float*>(input), statistics, parameters,
                        static_cast<const float*>(gradient), to, memory);
  }
}

void input_gradient_any(const PixelNormShape& s, const void* input, const void* gradient,
                        const NormGradients& sums, int64_t pixels, void* to, float* memory) {
  if (s.precision == Precision::bf16) {
    input_gradient(s, static_cast<const uint16_t*>(input), static_cast<const uint16_t*>(gradient),
                   sums, pixels, static_cast<uint16_t*>(to), memory);
  } else {
    input_gradient(s, static_cast<const float*>(input), static_cast<const float*>(gradient), sums,
                   pixels, static_cast<float*>(to), memory);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(statistics_any);
HWY_EXPORT(forward_any);
HWY_EXPORT(parameter_gradients_any);
HWY_EXPORT(input_gradient_any);

int64_t norm_scratch(const PixelNormShape& shape) { return int64_t{8} * group_values(shape); }

void norm_statistics(const PixelNormShape& shape, const void* input, const NormStatistics& to,
                     float* scratch) {
  HWY_DYNAMIC_DISPATCH(statistics_any)(shape, input, to, scratch);
}

void norm_forward(const PixelNormShape& shape, const void* input, const NormStatistics& statistics,
                  const NormParameters& parameters, void* output, float* scratch) {
  HWY_DYNAMIC_DISPATCH(forward_any)(shape, input, statistics, parameters, output, scratch);
}

void norm_parameter_gradients(const PixelNormShape& shape, const void* input,
                              const NormStatistics& statistics, const NormParameters& parameters,
                              const void* gradient, const NormGradients& to, float* scratch) {
  HWY_DYNAMIC_DISPATCH(parameter_gradients_any)
  (shape, input, statistics, parameters, gradient, to, scratch);
}

void norm_input_gradient(const PixelNormShape& shape, const void* input, const void* gradient,
                         const NormGradients& sums, int64_t pixels, void* to, float* scratch) {
  HWY_DYNAMIC_DISPATCH(input_gradient_any)(shape, input, gradient, sums, pixels, to, scratch);
}

}  // namespace stoker
#endif
