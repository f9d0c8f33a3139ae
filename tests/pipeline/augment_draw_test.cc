#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/augment.h"

namespace stoker {
namespace {

// Calls check(line, numbers) for each line of a golden file; see make_augment_golden.py.
void for_each_golden_line(const std::string& name,
                          const std::function<void(const std::string&, std::istream&)>& check) {
  std::ifstream file(STOKER_GOLDEN_DIR "/pipeline/" + name);
  ASSERT_TRUE(file) << name;
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream numbers(line);
    check(line, numbers);
  }
  EXPECT_GT(lines, 500);
}

TEST(AugmentDraw, RandomResizedCropIsTorchvisionsForTheSameNumbers) {
  for_each_golden_line("random_resized_crop.txt", [](const std::string& line, std::istream& in) {
    AugmentSpec spec{.output = {224, 224}, .crop = CropMode::random_resized};
    Size source;
    Box box;
    uint64_t seed = 0;
    int64_t epoch = 0, sample = 0;
    in >> source.width >> source.height >> spec.scale_min >> spec.scale_max >> spec.ratio_min >>
        spec.ratio_max >> seed >> epoch >> sample >> box.x >> box.y >> box.width >> box.height;
    ASSERT_TRUE(in);
    // For one pixel and a ratio of 0.3 torchvision gives an empty box.
    box.width = std::max(box.width, 1);
    const AugmentDraw draw = draw_augmentation(spec, source, seed, epoch, sample);
    EXPECT_EQ(draw.crop, box) << line;
    EXPECT_EQ(draw.resized, spec.output);
    EXPECT_EQ(draw.window, (Box{0, 0, 224, 224}));
  });
}

TEST(AugmentDraw, ResizeCenterIsTorchvisions) {
  for_each_golden_line("resize_center.txt", [](const std::string& line, std::istream& in) {
    AugmentSpec spec{.crop = CropMode::resize_center};
    Size source, resized;
    int x = 0, y = 0;
    in >> source.width >> source.height >> spec.resize_short >> spec.output.width >>
        spec.output.height >> resized.width >> resized.height >> x >> y;
    ASSERT_TRUE(in);
    spec.validate();
    const AugmentDraw draw = draw_augmentation(spec, source, 0, 0, 0);
    EXPECT_EQ(draw.crop, (Box{0, 0, source.width, source.height})) << line;
    EXPECT_EQ(draw.resized, resized) << line;
    EXPECT_EQ(draw.window, (Box{x, y, spec.output.width, spec.output.height})) << line;
  });
}

TEST(AugmentDraw, ResizeCenterDefaultsToTheUsualShortSide) {
  for (const auto& [output, expected] : {std::pair{224, 256}, {160, 182}, {32, 36}, {1, 1}}) {
    EXPECT_EQ(short_side({.output = {output, output}}), expected);
  }
  EXPECT_EQ(short_side({.output = {112, 224}}), 256);
  const AugmentDraw thread = draw_augmentation({.output = {224, 224}}, {1, 178'956'970}, 0, 0, 0);
  EXPECT_EQ(thread.resized.width, 256);
  EXPECT_GT(thread.resized.height, 0);
  EXPECT_GE(thread.window.y, 0);
}

// Mean and deviation of `values` must be those of a uniform distribution.
void expect_uniform(std::vector<double> values, double low, double high) {
  const double n = static_cast<double>(values.size());
  std::sort(values.begin(), values.end());
  double distance = 0;  // Kolmogorov and Smirnov's
  for (size_t i = 0; i < values.size(); ++i) {
    const double cumulated = (values[i] - low) / (high - low);
    distance = std::max({distance, std::abs(cumulated - static_cast<double>(i) / n),
                         std::abs(cumulated - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(distance * std::sqrt(n), 2.2);  // p < 1e-4
}

// The image is so large that pixels are fine, and the scale always fits: no try is rejected, so
// area and log ratio are uniform, and so is the corner.
TEST(AugmentDraw, RandomResizedCropHasItsDistributions) {
  const AugmentSpec spec{.output = {224, 224},
                         .crop = CropMode::random_resized,
                         .scale_min = 0.1,
                         .scale_max = 0.5,
                         .ratio_min = 0.5,
                         .ratio_max = 2.0};
  const Size source{20000, 20000};
  std::vector<double> areas, ratios, xs, ys;
  for (int64_t sample = 0; sample < 20000; ++sample) {
    const Box box = draw_augmentation(spec, source, 1, 2, sample).crop;
    areas.push_back(1.0 * box.width * box.height / 20000 / 20000);
    ratios.push_back(std::log(1.0 * box.width / box.height));
    xs.push_back(1.0 * box.x / (20000 - box.width));
    ys.push_back(1.0 * box.y / (20000 - box.height));
  }
  expect_uniform(areas, 0.1, 0.5);
  expect_uniform(ratios, std::log(0.5), std::log(2.0));
  expect_uniform(xs, 0, 1);
  expect_uniform(ys, 0, 1);
}

TEST(AugmentDraw, EveryCropLiesInsideTheImage) {
  const AugmentSpec spec{.output = {8, 8}, .crop = CropMode::random_resized};
  for (int width = 1; width < 40; width += 3) {
    for (int height = 1; height < 400; height = height * 3 / 2 + 1) {
      for (int64_t sample = 0; sample < 50; ++sample) {
        const Box box = draw_augmentation(spec, {width, height}, 1, 0, sample).crop;
        ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1 &&
                    box.x + box.width <= width && box.y + box.height <= height)
            << width << " x " << height;
      }
    }
  }
}

TEST(AugmentDraw, PadRandomShiftsEvenlyInBothDirections) {
  const AugmentSpec spec{.output = {32, 32}, .crop = CropMode::pad_random, .pad = 2};
  std::map<std::pair<int, int>, int> counts;
  for (int64_t sample = 0; sample < 25000; ++sample) {
    const AugmentDraw draw = draw_augmentation(spec, {32, 32}, 1, 0, sample);
    ++counts[{draw.shift_x, draw.shift_y}];
    ASSERT_LE(std::max(std::abs(draw.shift_x), std::abs(draw.shift_y)), 2);
  }
  ASSERT_EQ(counts.size(), 25u);
  for (const auto& [shift, count] : counts) EXPECT_NEAR(count, 1000, 5 * 31);
}

TEST(AugmentDraw, FlipIsAFairCoinOfEachEpoch) {
  const AugmentSpec spec{.output = {32, 32}, .crop = CropMode::whole, .flip = FlipMode::random};
  int flips = 0, changes = 0;
  for (int64_t sample = 0; sample < 10000; ++sample) {
    const bool first = draw_augmentation(spec, {32, 32}, 1, 0, sample).flip;
    const bool second = draw_augmentation(spec, {32, 32}, 1, 1, sample).flip;
    flips += first + second;
    changes += first != second;
  }
  EXPECT_NEAR(flips, 10000, 5 * 71);
  EXPECT_NEAR(changes, 5000, 5 * 50);
}

TEST(AugmentDraw, AlternatingFlipIsRandomOnceAndThenTheOppositeEveryEpoch) {
  const AugmentSpec spec{
      .output = {32, 32}, .crop = CropMode::pad_random, .pad = 2, .flip = FlipMode::alternating};
  int flips = 0;
  for (int64_t sample = 0; sample < 10000; ++sample) {
    const bool first = draw_augmentation(spec, {32, 32}, 1, 0, sample).flip;
    flips += first;
    for (int64_t epoch = 1; epoch < 5; ++epoch) {
      ASSERT_EQ(draw_augmentation(spec, {32, 32}, 1, epoch, sample).flip,
                first != (epoch % 2 == 1));
    }
  }
  EXPECT_NEAR(flips, 5000, 5 * 50);
}

TEST(AugmentDraw, CutoutLiesInsideAndReachesEveryEdge) {
  const AugmentSpec spec{.output = {32, 20}, .crop = CropMode::whole, .cutout = 12};
  std::map<int, int> xs, ys;
  for (int64_t sample = 0; sample < 21000; ++sample) {
    const Box box = draw_augmentation(spec, {50, 50}, 1, 0, sample).cutout;
    ASSERT_EQ(box.width, 12);
    ASSERT_EQ(box.height, 12);
    ++xs[box.x];
    ++ys[box.y];
  }
  ASSERT_EQ(xs.size(), 21u);
  ASSERT_EQ(xs.rbegin()->first, 20);
  ASSERT_EQ(ys.size(), 9u);
  for (const auto& [x, count] : xs) EXPECT_NEAR(count, 1000, 5 * 31);
  AugmentSpec none = spec;
  none.cutout = 0;
  EXPECT_EQ(draw_augmentation(none, {50, 50}, 1, 0, 0).cutout, Box{});
}

TEST(AugmentDraw, JitterHasTorchvisionsRangesAndEveryOrder) {
  const AugmentSpec spec{.output = {8, 8},
                         .crop = CropMode::whole,
                         .brightness = 0.4,
                         .contrast = 1.5,
                         .saturation = 0,
                         .hue = 0.2};
  std::map<std::array<uint8_t, 4>, int> orders;
  std::vector<double> factors[4];
  for (int64_t sample = 0; sample < 24000; ++sample) {
    const AugmentDraw draw = draw_augmentation(spec, {9, 9}, 1, 0, sample);
    ASSERT_TRUE(draw.jitter);
    std::array<uint8_t, 4> order;
    std::copy(draw.jitter_order, draw.jitter_order + 4, order.begin());
    ++orders[order];
    for (size_t op = 0; op < 4; ++op) factors[op].push_back(draw.jitter_factor[op]);
  }
  expect_uniform(factors[0], 0.6, 1.4);
  expect_uniform(factors[1], 0, 2.5);
  EXPECT_TRUE(std::all_of(factors[2].begin(), factors[2].end(), [](double f) { return f == 1; }));
  expect_uniform(factors[3], -0.2, 0.2);
  ASSERT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) {
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), std::begin({0, 1, 2, 3})));
    EXPECT_NEAR(count, 1000, 5 * 31);
  }
  EXPECT_FALSE(draw_augmentation({.output = {8, 8}}, {9, 9}, 1, 0, 0).jitter);
}

bool same(const AugmentDraw& a, const AugmentDraw& b) {
  return a.crop == b.crop && a.resized == b.resized && a.window == b.window &&
         a.shift_x == b.shift_x && a.shift_y == b.shift_y && a.flip == b.flip &&
         a.cutout == b.cutout && std::equal(a.jitter_order, a.jitter_order + 4, b.jitter_order) &&
         std::equal(a.jitter_factor, a.jitter_factor + 4, b.jitter_factor);
}

TEST(AugmentDraw, IsPureFromAnyThreadInAnyOrder) {
  const AugmentSpec spec{.output = {32, 32},
                         .crop = CropMode::random_resized,
                         .flip = FlipMode::random,
                         .cutout = 8,
                         .brightness = 0.4,
                         .hue = 0.1};
  constexpr int kSamples = 2000;
  std::vector<AugmentDraw> forwards(kSamples), backwards(kSamples);
  const auto draw = [&](int i) { return draw_augmentation(spec, {300, 200}, 9, 3, i); };
  std::thread thread([&] {
    for (int i = kSamples - 1; i >= 0; --i) backwards[static_cast<size_t>(i)] = draw(i);
  });
  for (int i = 0; i < kSamples; ++i) forwards[static_cast<size_t>(i)] = draw(i);
  thread.join();
  int repeated = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    ASSERT_TRUE(same(forwards[i], backwards[i]));
    repeated += i > 0 && same(forwards[i], forwards[i - 1]);
  }
  EXPECT_EQ(repeated, 0);
}

}  // namespace
}  // namespace stoker
