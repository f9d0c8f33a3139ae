// The weights of both resizes: every instruction set gives exactly those of the plain twins.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "decode/resize/planar_axis.h"
#include "decode/resize/resample_table.h"
#include "tests/decode/every_target.h"

namespace stoker {
namespace {

using AxisWeights = EveryTarget;

struct Lengths {
  int source, resized;
};

// From one pixel to thousands: reductions, enlargements, the same size, nearly the same size.
Lengths draw_lengths(std::mt19937& random, int trial) {
  const auto upto = [&](int most) { return 1 + static_cast<int>(random() % most); };
  switch (trial % 8) {
    case 0:
      return {upto(8), upto(40)};
    case 1:
      return {upto(4000), upto(30)};
    case 2:
      return {upto(30), upto(600)};
    case 3: {
      const int resized = upto(400);
      return {std::max(1, resized + static_cast<int>(random() % 5) - 2), resized};
    }
    case 4:
      return {224 * upto(6), 224};
    default:
      return {upto(700), upto(300)};
  }
}

struct Range {
  int begin, count;
};

Range draw_window(std::mt19937& random, int resized) {
  if (random() % 2 != 0) return {0, resized};
  const int count = 1 + static_cast<int>(random() % resized);
  return {static_cast<int>(random() % (resized - count + 1)), count};
}

// Compares the first `count` entries; later ones are not part of the table.
void expect_begins_as(const std::vector<int32_t>& actual, const std::vector<int32_t>& expected,
                      size_t count, const char* what) {
  ASSERT_LE(count, std::min(actual.size(), expected.size())) << what;
  const auto ends = std::mismatch(expected.begin(),
                                  expected.begin() + static_cast<ptrdiff_t>(count), actual.begin());
  ASSERT_EQ(ends.first - expected.begin(), static_cast<ptrdiff_t>(count)) << what;
}

void expect_same_table(const ResampleTable& actual, const ResampleTable& expected) {
  ASSERT_EQ(actual.key, expected.key);
  ASSERT_EQ(actual.identity, expected.identity);
  ASSERT_EQ(actual.source_begin, expected.source_begin);
  ASSERT_EQ(actual.source_end, expected.source_end);
  ASSERT_EQ(actual.max_taps, expected.max_taps);
  if (expected.identity) return;
  const auto count = static_cast<size_t>(expected.key.count);
  expect_begins_as(actual.first, expected.first, count, "first");
  expect_begins_as(actual.taps, expected.taps, count, "taps");
  expect_begins_as(actual.weights, expected.weights, count * expected.max_taps, "weights");
  expect_begins_as(actual.pairs, expected.pairs, 2 * count * expected.pair_count(), "pairs");
}

TEST_P(AxisWeights, OfPillowAreThePlainTwins) {
  std::mt19937 random(1);
  ResampleTable table;  // one for all trials: values of an earlier key must not show
  for (int trial = 0; trial < 4000; ++trial) {
    ResampleKey key;
    const Lengths lengths = draw_lengths(random, trial);
    key.source = lengths.source;
    key.resized = lengths.resized;
    const Range window = draw_window(random, key.resized);
    key.begin = window.begin;
    key.count = window.count;
    key.mirrored = random() % 2 != 0;
    key.filter = static_cast<Filter>(random() % kFilterCount);
    ResampleTable plain;
    build_resample_table_reference(key, plain);
    build_resample_table(key, table);
    expect_same_table(table, plain);
    ASSERT_FALSE(HasFatalFailure())
        << "trial " << trial << ": " << key.count << " of " << key.source << " -> " << key.resized;
  }
}

void expect_same_table(const PlanarAxis& actual, const PlanarAxis& expected) {
  ASSERT_EQ(actual.key, expected.key);
  ASSERT_EQ(actual.padded_count, expected.padded_count);
  ASSERT_EQ(actual.source_begin, expected.source_begin);
  ASSERT_EQ(actual.source_end, expected.source_end);
  ASSERT_EQ(actual.last_pixel_end, expected.last_pixel_end);
  ASSERT_EQ(actual.max_taps, expected.max_taps);
  const auto count = static_cast<size_t>(expected.padded_count);
  expect_begins_as(actual.first, expected.first, count, "first");
  expect_begins_as(actual.taps, expected.taps, count, "taps");
  expect_begins_as(actual.group_taps, expected.group_taps, count / kAxisGroup, "group_taps");
  expect_begins_as(actual.weights, expected.weights, count * expected.max_taps, "weights");
}

TEST_P(AxisWeights, OfPlanesAreThePlainTwins) {
  std::mt19937 random(2);
  PlanarAxis axis;
  int refused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    PlanarAxisKey key;
    const Lengths lengths = draw_lengths(random, trial);
    const Range window = draw_window(random, lengths.resized);
    key.crop_begin = random() % 3 == 0 ? 0 : static_cast<int>(random() % 50);
    key.crop_size = lengths.source;
    key.resized = lengths.resized;
    key.window_begin = window.begin;
    key.window_count = window.count;
    key.mirrored = random() % 2 != 0;
    constexpr int kFactors[] = {1, 2, 2, 2, 3, 4};
    key.factor = kFactors[random() % 6];
    if (key.factor == 2 && random() % 3 != 0) key.upsampling = Upsampling::triangle;
    const int behind = random() % 3 == 0 ? 0 : static_cast<int>(random() % 50);
    key.plane_size = (key.crop_begin + key.crop_size + behind + key.factor - 1) / key.factor;
    PlanarAxis plain;
    const bool is_built = build_planar_axis_reference(key, plain);
    ASSERT_EQ(build_planar_axis(key, axis), is_built);
    refused += is_built ? 0 : 1;
    if (is_built) expect_same_table(axis, plain);
    ASSERT_FALSE(HasFatalFailure())
        << "trial " << trial << ": " << key.window_count << " of " << key.crop_size << " -> "
        << key.resized << ", factor " << key.factor << " kind " << int(key.upsampling);
  }
  EXPECT_GT(refused, 10);
  EXPECT_LT(refused, 1000);
}

INSTANTIATE_TEST_SUITE_P(AllTargets, AxisWeights, every_target(), target_name);

}  // namespace
}  // namespace stoker
