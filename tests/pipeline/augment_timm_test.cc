// timm's policies: what a magnitude means, and how often each operation comes. The bytes are
// compared with timm itself in tests/python/test_timm.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "pipeline/augment.h"
#include "tests/pipeline/drawn_steps.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

constexpr Size kTimmSize{80, 40};

// The steps of many samples, in the order of the samples.
std::vector<std::vector<PixelStep>> drawn_steps(const std::string& list, int samples) {
  const AugmentSpec spec(list, kTimmSize);
  std::vector<std::vector<PixelStep>> all;
  Draws draws;
  for (int64_t sample = 0; sample < samples; ++sample) {
    draw_augmentation(spec, kTimmSize, 1, 0, sample, draws);
    EXPECT_EQ(draws.failure(), "");
    all.emplace_back(draws.steps().begin(), draws.steps().end());
  }
  return all;
}

std::vector<std::vector<PixelStep>> of_config(const std::string& config, int samples) {
  return drawn_steps("timm_auto_augment('" + config + "')", samples);
}

std::string name_of(const PixelStep& step) { return warp_of(step).first; }

// The number that the magnitude became.
double number_of(const PixelStep& step) {
  const auto [name, place] = warp_of(step);
  return name == "rotate" ? std::asin(step.values[1]) * 180 / std::acos(-1.0) : step.values[place];
}

std::map<std::string, std::vector<double>> numbers_of(
    const std::vector<std::vector<PixelStep>>& rows) {
  std::map<std::string, std::vector<double>> numbers;
  for (const auto& steps : rows) {
    for (const PixelStep& step : steps) numbers[name_of(step)].push_back(number_of(step));
  }
  return numbers;
}

// Every value that is drawn, without its repetitions and to 9 digits.
std::vector<double> distinct_values(std::vector<double> numbers) {
  for (double& number : numbers) number = std::round(number * 1e9) / 1e9;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

using TimmValues = std::vector<double>;

TEST(AugmentTimm, MagnitudesOfRandAugmentAreTimms) {
  auto numbers = numbers_of(of_config("rand-m9-n1-p1", 6000));
  EXPECT_EQ(numbers.size(), 15u);
  EXPECT_EQ(distinct_values(numbers["rotate"]), (TimmValues{-27, 27}));
  EXPECT_EQ(distinct_values(numbers["shear_x"]), (TimmValues{-0.27, 0.27}));
  EXPECT_EQ(distinct_values(numbers["shear_y"]), (TimmValues{-0.27, 0.27}));
  EXPECT_EQ(distinct_values(numbers["translate_x"]), (TimmValues{-32.4, 32.4}));
  EXPECT_EQ(distinct_values(numbers["translate_y"]), (TimmValues{-16.2, 16.2}));
  EXPECT_EQ(distinct_values(numbers["posterize"]), (TimmValues{3}));
  EXPECT_EQ(distinct_values(numbers["solarize"]), (TimmValues{230}));
  EXPECT_EQ(distinct_values(numbers["solarize_add"]), (TimmValues{99}));
  for (const char* name : {"saturation", "contrast", "brightness", "sharpness"}) {
    EXPECT_EQ(distinct_values(numbers[name]), (TimmValues{1.72})) << name;
  }
  numbers = numbers_of(of_config("rand-m9-n1-p1-inc1", 6000));
  EXPECT_EQ(numbers.size(), 15u);
  EXPECT_EQ(distinct_values(numbers["posterize"]), (TimmValues{1}));
  EXPECT_EQ(distinct_values(numbers["solarize"]), (TimmValues{26}));
  for (const char* name : {"saturation", "contrast", "brightness", "sharpness"}) {
    EXPECT_EQ(distinct_values(numbers[name]), (TimmValues{0.19, 1.81})) << name;
  }
}

TEST(AugmentTimm, SolarizeAddMakesDarkBytesLighter) {
  for (const auto& steps : of_config("rand-m5-n1-p1", 200)) {
    const PixelStep& step = steps.at(0);
    if (step.kind->name != std::string("solarize_add")) continue;
    ByteTable table;
    step.kind->table(step, table);
    EXPECT_EQ(step.values[0], 55);
    EXPECT_EQ(table[0], 55);
    EXPECT_EQ(table[127], 182);
    EXPECT_EQ(table[128], 128);
    EXPECT_EQ(table[255], 255);
    return;
  }
  FAIL() << "it was never drawn";
}

TEST(AugmentTimm, MagnitudesEndAtTheirMost) {
  EXPECT_EQ(distinct_values(numbers_of(of_config("rand-m30-n1-p1", 3000))["rotate"]),
            (TimmValues{-30, 30}));
  auto numbers = numbers_of(of_config("rand-m20-mmax20-n1-p1-inc1", 6000));
  EXPECT_EQ(distinct_values(numbers["rotate"]), (TimmValues{-60, 60}));
  EXPECT_EQ(distinct_values(numbers["posterize"]), (TimmValues{0}));
  EXPECT_EQ(distinct_values(numbers["brightness"]), (TimmValues{0.1, 2.8}));
  EXPECT_EQ(distinct_values(numbers["solarize"]), (TimmValues{0}));
  EXPECT_EQ(distinct_values(numbers["solarize_add"]), (TimmValues{128}));
}

// The magnitude is normal around 9 with a deviation of 0.5, and ends at 10: 2.3 % of all.
TEST(AugmentTimm, MagnitudesAreNormalWithTheDeviation) {
  const auto numbers = numbers_of(of_config("rand-m9-mstd0.5-n1-p1", 60000));
  double sum = 0, squares = 0;
  int ends = 0, below = 0;
  const std::vector<double>& degrees = numbers.at("rotate");
  for (const double each : degrees) {
    const double magnitude = std::abs(each) / 3;
    ASSERT_LE(magnitude, 10.0000001);
    ends += magnitude > 9.9999999;
    below += magnitude < 9;
    sum += magnitude;
    squares += magnitude * magnitude;
  }
  const auto n = static_cast<double>(degrees.size());
  EXPECT_NEAR(n, 4000, 5 * 63);
  EXPECT_NEAR(ends / n, 0.02275, 5 * std::sqrt(0.0222 / n));
  EXPECT_NEAR(below / n, 0.5, 5 * 0.5 / std::sqrt(n));
  // For a normal number that is cut off at two deviations.
  EXPECT_NEAR(sum / n, 9 - 0.5 * 0.00849, 5 * 0.5 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n - sum / n * sum / n), 0.5 * 0.9838, 0.03);
}

TEST(AugmentTimm, ADeviationAbove100IsEvenFrom0) {
  std::vector<double> magnitudes;
  const auto numbers = numbers_of(of_config("rand-m8-mstd101-n1-p1", 30000));
  for (const double each : numbers.at("shear_x")) {
    magnitudes.push_back(std::abs(each) / 0.03);
  }
  std::sort(magnitudes.begin(), magnitudes.end());
  const auto n = static_cast<double>(magnitudes.size());
  for (size_t i = 0; i < magnitudes.size(); ++i) {
    ASSERT_NEAR(magnitudes[i] / 8, static_cast<double>(i) / n, 2.2 / std::sqrt(n));
  }
}

TEST(AugmentTimm, OperationsComeEquallyOftenWithTheProbability) {
  constexpr int kSamples = 45000;
  const auto rows = of_config("rand-m9-inc1", kSamples);
  size_t none = 0, two = 0;
  for (const auto& steps : rows) none += steps.empty(), two += steps.size() == 2;
  EXPECT_NEAR(static_cast<double>(none), kSamples / 4.0, 5 * 92);
  EXPECT_NEAR(static_cast<double>(two), kSamples / 4.0, 5 * 92);
  const auto numbers = numbers_of(rows);
  ASSERT_EQ(numbers.size(), 15u);
  for (const auto& [name, all] : numbers) {
    EXPECT_NEAR(static_cast<double>(all.size()), kSamples / 15.0, 5 * 55) << name;
  }
}

TEST(AugmentTimm, InterpolationIsDrawnOrAsItIsGiven) {
  int cubic = 0, all = 0;
  const auto count = [&](const std::string& list) {
    cubic = all = 0;
    for (const auto& steps : drawn_steps(list, 6000)) {
      for (const PixelStep& step : steps) {
        if (step.kind->name != std::string("affine")) continue;
        ++all;
        cubic += step.choice == static_cast<uint8_t>(Interpolation::bicubic);
        EXPECT_NE(step.choice, static_cast<uint8_t>(Interpolation::nearest));
        EXPECT_EQ(step.fill, (Rgb{1, 2, 3}));
      }
    }
  };
  count("timm_auto_augment('rand-m9', fill=(1, 2, 3))");
  EXPECT_GT(all, 1500);
  EXPECT_NEAR(cubic, all / 2.0, 5 * std::sqrt(all) / 2);
  count("timm_auto_augment('rand-m9', 'bicubic', fill=(1, 2, 3))");
  EXPECT_EQ(cubic, all);
  EXPECT_EQ(drawn_steps("timm_auto_augment('3a')", 1)[0].size(), 1u);
}

// Weights of 3aw: 6 of 32 for grey, 3 for rotations, 1 for invert. None comes twice.
TEST(AugmentTimm, SetsWithWeightsTakeEachOperationOnce) {
  constexpr int kSamples = 32000;
  const auto numbers = numbers_of(of_config("rand-m9-n1-p1-t3aw", kSamples));
  ASSERT_EQ(numbers.size(), 13u);  // two of the 14 change the saturation
  EXPECT_NEAR(static_cast<double>(numbers.at("pillow_blur").size()), 6000, 5 * 70);
  EXPECT_NEAR(static_cast<double>(numbers.at("rotate").size()), 3000, 5 * 52);
  EXPECT_NEAR(static_cast<double>(numbers.at("invert").size()), 1000, 5 * 31);
  // Colour as a drawn factor, and as 1 - 0.95 of "Desaturate".
  EXPECT_NEAR(static_cast<double>(numbers.at("saturation").size()), 7000, 5 * 74);
  int rotated = 0;
  for (const auto& steps : of_config("rand-m9-n14-p1-t3aw", 2000)) {
    std::map<std::string, int> counts;
    for (const PixelStep& step : steps) ++counts[name_of(step)];
    ASSERT_EQ(steps.size(), 14u);
    ASSERT_EQ(counts["saturation"], 2);
    ASSERT_EQ(counts.size(), 13u);
    rotated += name_of(steps[0]) == "rotate";
  }
  EXPECT_NEAR(rotated, 2000 * 3.0 / 32, 5 * 14);
}

TEST(AugmentTimm, LearnedPoliciesFollowTheirTables) {
  constexpr int kSamples = 50000;
  // Among 25 pairs: those with the operation, with their probabilities.
  auto numbers = numbers_of(of_config("original", kSamples));
  EXPECT_NEAR(static_cast<double>(numbers["posterize"].size()), kSamples / 25.0 * 2.8, 5 * 73);
  EXPECT_EQ(distinct_values(numbers["posterize"]), (TimmValues{6, 7}));
  EXPECT_NEAR(static_cast<double>(numbers["contrast"].size()), kSamples / 25.0 * 2, 5 * 62);
  numbers = numbers_of(of_config("originalr", kSamples));
  EXPECT_EQ(distinct_values(numbers["posterize"]), (TimmValues{1, 2}));
  numbers = numbers_of(of_config("v0", kSamples));
  EXPECT_NEAR(static_cast<double>(numbers["solarize_add"].size()), kSamples / 25.0 * 1.4, 5 * 52);
  EXPECT_EQ(distinct_values(numbers["solarize_add"]), (TimmValues{33, 77}));
  EXPECT_EQ(distinct_values(numbers["posterize"]), (TimmValues{0, 2}));
  EXPECT_EQ(distinct_values(numbers_of(of_config("v0r", kSamples))["posterize"]),
            (TimmValues{2, 4}));
  // With a deviation no two magnitudes are the same.
  EXPECT_GT(distinct_values(numbers_of(of_config("original-mstd0.5", 2000))["contrast"]).size(),
            100u);
}

TEST(AugmentTimm, ThreeAugmentIsOneOfThree) {
  const auto numbers = numbers_of(of_config("3a", 30000));
  ASSERT_EQ(numbers.size(), 3u);
  for (const auto& [name, all] : numbers) {
    EXPECT_NEAR(static_cast<double>(all.size()), 10000, 5 * 82) << name;
  }
  EXPECT_EQ(distinct_values(numbers.at("solarize")), (TimmValues{128}));
  EXPECT_EQ(distinct_values(numbers.at("saturation")), (TimmValues{0}));
  std::vector<double> radii = numbers.at("pillow_blur");
  std::sort(radii.begin(), radii.end());
  for (size_t i = 0; i < radii.size(); ++i) {
    const double share = (radii[i] - 0.1) / 1.9;
    ASSERT_NEAR(share, static_cast<double>(i) / static_cast<double>(radii.size()), 0.022);
  }
}

TEST(AugmentTimm, AugMixSharesAreThoseOfItsDistributions) {
  constexpr int kSamples = 20000;
  double over = 0, over_squares = 0;
  std::map<size_t, int> depths;
  for (const auto& steps : of_config("augmix-w2-a2", kSamples)) {
    ASSERT_EQ(steps.front().kind->name, std::string("blend_begin"));
    ASSERT_EQ(steps.front().values[0], 0);
    ASSERT_EQ(steps.back().kind->name, std::string("blend_over"));
    const double share = steps.back().values[0];
    over += share;
    over_squares += share * share;
    double sum = 0;
    for (const PixelStep& step : steps) {
      if (step.kind->name == std::string("blend")) sum += step.values[0];
    }
    ASSERT_NEAR(sum, 1, 1e-6);
  }
  // Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2a + 1)).
  const double mean = over / kSamples, variance = over_squares / kSamples - mean * mean;
  EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(0.05 / kSamples));
  EXPECT_NEAR(variance, 0.05, 0.002);
  for (const auto& steps : of_config("augmix-w1-d2-mstd0", 200)) {
    size_t identities = 0;
    for (const PixelStep& step : steps) identities += name_of(step) == "identity";
    EXPECT_EQ(steps.size() - 3 + identities, 2u + identities);
  }
  // A third of the side would be 0.3 at magnitude 10.
  const auto numbers = numbers_of(of_config("augmix-m10-w1-d1-mstd0", 3000));
  EXPECT_EQ(distinct_values(numbers.at("translate_x")), (TimmValues{-24, 24}));
}

TEST(AugmentTimm, RefusesConfigsWithTheSectionThatIsWrong) {
  const auto refusal = [](const std::string& config) -> std::string {
    return problem_of([&] { AugmentSpec("timm_auto_augment('" + config + "')", kTimmSize); });
  };
  EXPECT_THAT(refusal("randm9"), HasSubstr("config is 'randm9', must be rand, augmix, original"));
  EXPECT_THAT(refusal("rand-m9-w0"), HasSubstr("without the section 'w0': rand has m, n, p, mstd"));
  EXPECT_THAT(refusal("rand-inc"), HasSubstr("with a whole number from 0 to 1 behind inc"));
  EXPECT_THAT(refusal("rand-m9.5"), HasSubstr("with a whole number from 0 to 100 behind m"));
  EXPECT_THAT(refusal("rand-m101"), HasSubstr("with a whole number from 0 to 100 behind m"));
  EXPECT_THAT(refusal("rand-n0"), HasSubstr("with a whole number from 1 to 16 behind n"));
  EXPECT_THAT(refusal("rand-p1.5"), HasSubstr("with a number from 0 to 1 behind p"));
  EXPECT_THAT(refusal("rand-mstd1x"), HasSubstr("behind mstd"));
  EXPECT_THAT(refusal("rand-m9-m9"), HasSubstr("with m only once"));
  EXPECT_THAT(refusal("rand-t3a-t3a"), HasSubstr("with t only once"));
  EXPECT_THAT(refusal("rand-t3b"), HasSubstr("with weights, 3a or 3aw behind t"));
  EXPECT_THAT(refusal("rand-"), HasSubstr("without the section ''"));
  EXPECT_THAT(refusal("rand-tweights-n16"), HasSubstr("with at most 15 behind n"));
  EXPECT_THAT(refusal("augmix-b1"), HasSubstr("without the section 'b1': augmix has m, mstd, w"));
  EXPECT_THAT(refusal("augmix-a0"), HasSubstr("with a number above 0 behind a"));
  EXPECT_THAT(refusal("augmix-w17"), HasSubstr("with a whole number from 1 to 16 behind w"));
  EXPECT_THAT(refusal("v0-m3"), HasSubstr("without the section 'm3': v0 has mstd"));
  EXPECT_EQ(refusal("rand-mstd101-inc0-p0-mmax1-n16"), "nothing was thrown");
}

}  // namespace
}  // namespace stoker
