#include "decode/resize/planar_axis.h"

#include <gtest/gtest.h>

#include <random>

#include "decode/resize/resample_table.h"

namespace stoker {
namespace {

PlanarAxisKey random_key(std::mt19937& random) {
  PlanarAxisKey key;
  key.crop_begin = static_cast<int>(random() % 50);
  key.crop_size = 1 + static_cast<int>(random() % 600);
  key.resized = 1 + static_cast<int>(random() % 300);
  key.window_count = 1 + static_cast<int>(random() % key.resized);
  key.window_begin = static_cast<int>(random() % (key.resized - key.window_count + 1));
  key.mirrored = random() % 2 != 0;
  key.plane_size = key.crop_begin + key.crop_size;
  return key;
}

// Returns the weights of output `i`, spread over the plane.
std::vector<double> spread(const PlanarAxis& axis, int i) {
  std::vector<double> all(static_cast<size_t>(axis.key.plane_size), 0);
  for (int t = 0; t < axis.taps[i]; ++t) {
    all[static_cast<size_t>(axis.first[i] + t)] = (axis.weights_of(i)[t] & 0xffff) / 32768.0;
  }
  return all;
}

// Returns Pillow's weights of the pixels, spread over the image.
std::vector<double> pillow(const ResampleTable& table, const PlanarAxisKey& key, int pixels,
                           int i) {
  std::vector<double> all(static_cast<size_t>(pixels), 0);
  if (table.identity) {
    const int from = key.mirrored ? key.window_count - 1 - i : i;
    all[static_cast<size_t>(key.crop_begin + key.window_begin + from)] = 1;
    return all;
  }
  for (int t = 0; t < table.taps[i]; ++t) {
    all[static_cast<size_t>(key.crop_begin + table.first[i] + t)] =
        table.weights[static_cast<size_t>(i) * table.max_taps + t] / double(1 << kWeightBits);
  }
  return all;
}

// Adds the samples from which libjpeg's upsampling makes pixel `pixel`.
void add_upsampled(const PlanarAxisKey& key, int pixel, double weight, std::vector<double>& to) {
  const int sample = pixel / key.factor;
  if (key.upsampling == Upsampling::replicate) {
    to[static_cast<size_t>(sample)] += weight;
    return;
  }
  int near = sample + (pixel % 2 != 0 ? 1 : -1);
  near = std::min(std::max(near, 0), key.plane_size - 1);
  to[static_cast<size_t>(sample)] += 0.75 * weight;
  to[static_cast<size_t>(near)] += 0.25 * weight;
}

TEST(PlanarAxis, IsPillowsResizeOfLibjpegsUpsampling) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 150; ++trial) {
    PlanarAxisKey key = random_key(random);
    const int pixels = key.plane_size + static_cast<int>(random() % 3);
    const int kind = trial % 4;
    key.factor = kind == 0 ? 1 : kind == 3 ? 4 : 2;
    key.upsampling = kind == 1 ? Upsampling::triangle : Upsampling::replicate;
    key.plane_size = (pixels + key.factor - 1) / key.factor;
    PlanarAxis axis;
    if (!build_planar_axis(key, axis)) continue;
    ResampleTable table;
    build_resample_table({key.crop_size, key.resized, key.window_begin, key.window_count,
                          key.mirrored, Filter::bilinear},
                         table);
    EXPECT_EQ(axis.last_pixel_end, key.crop_begin + table.source_end);
    for (int i = 0; i < key.window_count; ++i) {
      const std::vector<double> of_pixels = pillow(table, key, pixels, i);
      std::vector<double> expected(static_cast<size_t>(key.plane_size), 0);
      for (int p = 0; p < pixels; ++p) {
        if (of_pixels[p] != 0) add_upsampled(key, p, of_pixels[p], expected);
      }
      const std::vector<double> actual = spread(axis, i);
      for (size_t s = 0; s < actual.size(); ++s) {
        ASSERT_NEAR(actual[s], expected[s], 1.1 / 32768) << "trial " << trial << " output " << i;
      }
    }
  }
}

TEST(PlanarAxis, WeightsSumToOneAndStayInside) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const PlanarAxisKey key = random_key(random);
    PlanarAxis axis;
    if (!build_planar_axis(key, axis)) continue;
    EXPECT_GE(axis.source_begin, 0);
    EXPECT_LE(axis.source_end, key.plane_size);
    for (int i = 0; i < axis.padded_count; ++i) {
      int sum = 0;
      for (int t = 0; t < axis.max_taps; ++t) {
        const int weight = axis.weights_of(i)[t] & 0xffff;
        EXPECT_EQ(axis.weights_of(i)[t], weight * 0x10001);
        if (t >= axis.taps[i]) {
          EXPECT_EQ(weight, 0);
        }
        sum += weight;
      }
      EXPECT_NEAR(sum, 32768, axis.taps[i] == 1 ? 1 : 0) << "trial " << trial << " output " << i;
      EXPECT_GE(axis.first[i], axis.source_begin);
      EXPECT_LE(axis.first[i] + axis.taps[i], axis.source_end);
      EXPECT_LE(axis.taps[i], axis.group_taps[i / kAxisGroup]);
    }
  }
}

TEST(PlanarAxis, RefusesVeryStrongReductions) {
  PlanarAxisKey key;
  key.crop_size = key.plane_size = 50000;
  key.resized = key.window_count = 100;
  PlanarAxis axis;
  EXPECT_FALSE(build_planar_axis(key, axis));
  key.resized = key.window_count = 1000;
  EXPECT_TRUE(build_planar_axis(key, axis));
}

}  // namespace
}  // namespace stoker
