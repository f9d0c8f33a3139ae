#include <algorithm>
#include <cmath>
#include <numbers>

#include "decode/resize/resample_table.h"

namespace stoker {
namespace {

double triangle(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Half open, so that a source pixel between two outputs belongs to one of them.
double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

// The window's constants are floats in Pillow.
double hamming(double x) {
  x = std::fabs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

double cubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

struct Kernel {
  double (*value)(double);
  double reach;  // zero further from its center
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::box:
      return {box, 0.5};
    case Filter::hamming:
      return {hamming, 1.0};
    case Filter::bicubic:
      return {cubic, 2.0};
    case Filter::lanczos:
      return {lanczos, 3.0};
    case Filter::bilinear:
    case Filter::nearest:
      break;
  }
  return {triangle, 1.0};
}

int32_t fixed_weight(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

// The geometry of an axis, with Pillow's order of operations, and so Pillow's rounding.
struct Axis {
  explicit Axis(const ResampleKey& key)
      : source(key.source),
        scale(static_cast<double>(static_cast<float>(key.source)) / key.resized),
        filter_scale(std::max(scale, 1.0)),
        kernel(kernel_of(key.filter)),
        support(kernel.reach * filter_scale) {}
  double center(int i) const { return (i + 0.5) * scale; }
  int first(int i) const { return std::max(0, static_cast<int>(center(i) - support + 0.5)); }
  int end(int i) const { return std::min(source, static_cast<int>(center(i) + support + 0.5)); }

  int source;
  double scale, filter_scale;
  Kernel kernel;
  double support;
};

// Returns the output pixel of the whole resized axis that is entry `i` of the table.
int output_pixel(const ResampleKey& key, int i) {
  return key.begin + (key.mirrored ? key.count - 1 - i : i);
}

void fill_weights(const Axis& axis, int pixel, int first, int taps, double* exact,
                  int32_t* weights) {
  const double center = axis.center(pixel);
  const double inverse = 1.0 / axis.filter_scale;
  double sum = 0.0;
  for (int t = 0; t < taps; ++t) {
    exact[t] = axis.kernel.value((t + first - center + 0.5) * inverse);
    sum += exact[t];
  }
  for (int t = 0; t < taps; ++t) weights[t] = fixed_weight(sum != 0.0 ? exact[t] / sum : exact[t]);
}

void fill_pairs(ResampleTable& table) {
  const int pair_count = table.pair_count();
  table.pairs.resize(static_cast<size_t>(table.key.count) * pair_count * 2);
  int32_t* pair = table.pairs.data();
  for (int i = 0; i < table.key.count; ++i) {
    const int32_t* weights = table.weights.data() + static_cast<size_t>(i) * table.max_taps;
    for (int t = 0; t < table.max_taps; t += 2, pair += 2) {
      const int32_t even = weights[t];
      const int32_t odd = t + 1 < table.max_taps ? weights[t + 1] : 0;
      constexpr int32_t kLowMask = (1 << kLowWeightBits) - 1;
      const auto join = [](int32_t a, int32_t b) {
        return static_cast<int32_t>((static_cast<uint32_t>(a) & 0xffffu) |
                                    (static_cast<uint32_t>(b) << 16));
      };
      pair[0] = join(even >> kLowWeightBits, odd >> kLowWeightBits);
      pair[1] = join(even & kLowMask, odd & kLowMask);
    }
  }
}

// Each output takes one source pixel. The coordinate is a running sum, because Pillow's is: its
// rounding shows where it falls between two pixels.
void fill_nearest(ResampleTable& table) {
  const ResampleKey& key = table.key;
  const double step = static_cast<double>(static_cast<float>(key.source)) / key.resized;
  double coordinate = step * 0.5;
  table.first.resize(key.count);
  for (int pixel = 0; pixel < key.begin + key.count; ++pixel, coordinate += step) {
    if (pixel < key.begin) continue;
    const int i = pixel - key.begin;
    table.first[key.mirrored ? key.count - 1 - i : i] =
        std::min(static_cast<int>(coordinate), key.source - 1);
  }
  const auto ends = std::minmax(table.first.front(), table.first.back());
  table.source_begin = ends.first;
  table.source_end = ends.second + 1;
  table.max_taps = 1;
  table.taps.assign(key.count, 1);
  table.weights.assign(key.count, 1 << kWeightBits);
  fill_pairs(table);
}

}  // namespace

void build_resample_table_reference(const ResampleKey& key, ResampleTable& table) {
  table.key = key;
  table.identity = key.source == key.resized;
  if (table.identity) {
    table.source_begin = key.begin;
    table.source_end = key.begin + key.count;
    table.max_taps = 1;
    table.first.resize(key.count);
    table.taps.assign(key.count, 1);
    for (int i = 0; i < key.count; ++i) table.first[i] = output_pixel(key, i);
    return;
  }
  if (key.filter == Filter::nearest) return fill_nearest(table);
  const Axis axis(key);
  table.first.resize(key.count);
  table.taps.resize(key.count);
  table.max_taps = 1;
  for (int i = 0; i < key.count; ++i) {
    const int pixel = output_pixel(key, i);
    table.first[i] = axis.first(pixel);
    table.taps[i] = axis.end(pixel) - table.first[i];
    table.max_taps = std::max(table.max_taps, table.taps[i]);
  }
  // Both ends grow with the output pixel, so the window's ends bound the source.
  table.source_begin = axis.first(key.begin);
  table.source_end = axis.end(key.begin + key.count - 1);
  table.weights.assign(static_cast<size_t>(key.count) * table.max_taps, 0);
  table.exact.resize(static_cast<size_t>(table.max_taps));
  for (int i = 0; i < key.count; ++i) {
    fill_weights(axis, output_pixel(key, i), table.first[i], table.taps[i], table.exact.data(),
                 table.weights.data() + static_cast<size_t>(i) * table.max_taps);
  }
  fill_pairs(table);
}

}  // namespace stoker
