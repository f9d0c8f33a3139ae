#include <algorithm>
#include <cmath>

#include "decode/resize/planar_axis.h"

namespace stoker {
namespace {

constexpr int kUnit = 1 << 15;
constexpr int kMaxPixelTaps = 2 * kMaxAxisTaps;

// The triangle filter over the pixels of the crop, as Pillow places it.
struct PixelTaps {
  int first = 0;  // pixel of the image
  int count = 0;
  double weights[kMaxPixelTaps];
};

class Geometry {
 public:
  explicit Geometry(const PlanarAxisKey& key)
      : key_(key),
        scale_(static_cast<double>(static_cast<float>(key.crop_size)) / key.resized),
        support_(std::max(scale_, 1.0)),
        inverse_(1.0 / support_) {}

  int begin(int i) const { return std::max(0, static_cast<int>(center(i) - support_ + 0.5)); }
  int end(int i) const {
    return std::min(key_.crop_size, static_cast<int>(center(i) + support_ + 0.5));
  }

  void pixels(int i, PixelTaps& taps) const {
    const int from = begin(i);
    const double center_less_half = center(i) - 0.5;
    taps.first = key_.crop_begin + from;
    taps.count = end(i) - from;
    double sum = 0;
    for (int t = 0; t < taps.count; ++t) {
      const double weight = 1.0 - std::fabs((from + t - center_less_half) * inverse_);
      taps.weights[t] = std::max(weight, 0.0);
      sum += taps.weights[t];
    }
    const double normal = 1.0 / sum;
    for (int t = 0; t < taps.count; ++t) taps.weights[t] *= normal;
  }

 private:
  double center(int i) const { return (i + 0.5) * scale_; }

  const PlanarAxisKey& key_;
  double scale_, support_, inverse_;
};

// Turns weights of pixels into weights of the samples that they are made from, in place.
void carry_to_samples(const PlanarAxisKey& key, PixelTaps& taps) {
  if (key.factor == 1) return;
  const bool triangle = key.upsampling == Upsampling::triangle;
  const int reach = triangle ? 1 : 0;
  const int last = key.plane_size - 1;
  const int last_pixel = taps.first + taps.count - 1;
  const int first = std::max(0, taps.first / key.factor - reach);
  const int count = std::min(last, last_pixel / key.factor + reach) - first + 1;
  double samples[kMaxPixelTaps + 2];
  std::fill_n(samples, count, 0.0);
  for (int t = 0; t < taps.count; ++t) {
    const int pixel = taps.first + t;
    const int sample = pixel / key.factor - first;
    if (triangle) {
      const int neighbour = std::clamp(sample + (pixel % 2 != 0 ? 1 : -1), 0, count - 1);
      samples[sample] += 0.75 * taps.weights[t];
      samples[neighbour] += 0.25 * taps.weights[t];
    } else {
      samples[sample] += taps.weights[t];
    }
  }
  taps.first = first;
  taps.count = count;
  std::copy_n(samples, count, taps.weights);
}

// Rounds so that the sum stays one: every weight is a difference of rounded partial sums.
int fixed_taps(const PixelTaps& taps, int32_t* fixed) {
  double sum = 0;
  int before = 0;
  for (int t = 0; t < taps.count; ++t) {
    sum += taps.weights[t];
    const int upto = static_cast<int>(sum * kUnit + 0.5);
    fixed[t] = std::min(upto - before, kUnit - 1);
    before = upto;
  }
  return taps.count;
}

// Drops weights of zero at both ends. Returns how many were dropped at the front.
int trim(int32_t* fixed, int& count) {
  int front = 0;
  while (front < count - 1 && fixed[front] == 0) ++front;
  while (count - 1 > front && fixed[count - 1] == 0) --count;
  count -= front;
  std::copy_n(fixed + front, count, fixed);
  return front;
}

struct Entry {
  int first = 0;
  int count = 0;
  int32_t fixed[kMaxPixelTaps + 2];
};

bool make_entry(const Geometry& geometry, const PlanarAxisKey& key, int i, Entry& entry) {
  PixelTaps taps;
  geometry.pixels(i, taps);
  carry_to_samples(key, taps);
  entry.count = fixed_taps(taps, entry.fixed);
  entry.first = taps.first + trim(entry.fixed, entry.count);
  return entry.count <= kMaxAxisTaps;
}

// Returns the resized pixel that is output `i`; outputs past the end repeat the last one.
int resized_pixel(const PlanarAxisKey& key, int i) {
  i = std::min(i, key.window_count - 1);
  return key.window_begin + (key.mirrored ? key.window_count - 1 - i : i);
}

}  // namespace

bool build_planar_axis_reference(const PlanarAxisKey& key, PlanarAxis& axis) {
  axis.key = {};
  if (!lay_out_planar_axis(key, axis)) return false;
  const Geometry geometry(key);
  std::fill(axis.group_taps.begin(), axis.group_taps.end(), 0);
  std::fill(axis.weights.begin(), axis.weights.end(), 0);
  axis.source_begin = key.plane_size;
  axis.source_end = 0;
  int32_t* to = axis.weights.data();
  for (int i = 0; i < axis.padded_count; ++i, to += axis.max_taps) {
    Entry entry;
    if (!make_entry(geometry, key, resized_pixel(key, i), entry) || entry.count > axis.max_taps) {
      return false;
    }
    axis.first[i] = entry.first;
    axis.taps[i] = entry.count;
    int32_t& most = axis.group_taps[i / kAxisGroup];
    most = std::max(most, entry.count);
    axis.source_begin = std::min(axis.source_begin, entry.first);
    axis.source_end = std::max(axis.source_end, entry.first + entry.count);
    for (int t = 0; t < entry.count; ++t) to[t] = entry.fixed[t] * 0x10001;
  }
  axis.last_pixel_end = key.crop_begin + geometry.end(key.window_begin + key.window_count - 1);
  axis.key = key;
  return true;
}

}  // namespace stoker
