// The policies: torchvision's magnitudes, bit for bit, and which operations are chosen how often.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "pipeline/augment.h"
#include "pipeline/augment/policy_ops.h"
#include "tests/pipeline/drawn_steps.h"

namespace stoker {
namespace {

const std::map<std::string, PolicyOp>& names() {
  static const std::map<std::string, PolicyOp> all = {{"ShearX", PolicyOp::shear_x},
                                                      {"ShearY", PolicyOp::shear_y},
                                                      {"TranslateX", PolicyOp::translate_x},
                                                      {"TranslateY", PolicyOp::translate_y},
                                                      {"Rotate", PolicyOp::rotate},
                                                      {"Brightness", PolicyOp::brightness},
                                                      {"Color", PolicyOp::color},
                                                      {"Contrast", PolicyOp::contrast},
                                                      {"Sharpness", PolicyOp::sharpness},
                                                      {"Posterize", PolicyOp::posterize},
                                                      {"Solarize", PolicyOp::solarize}};
  return all;
}

TEST(AugmentPolicy, MagnitudesAreTorchvisionsBitForBit) {
  const std::map<std::string, PolicyLimits> limits = {
      {"random_augment", kRandomAugmentLimits},
      {"auto_augment", kRandomAugmentLimits},
      {"trivial_augment_wide", kTrivialAugmentLimits},
      {"aug_mix", kAugMixLimits}};
  std::ifstream file(STOKER_GOLDEN_DIR "/pipeline/policy_magnitudes.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') continue;
    std::istringstream words(line);
    std::string policy, op, magnitude;
    int bins = 0, bin = 0;
    Size size;
    words >> policy >> op >> bins >> bin >> size.width >> size.height >> magnitude;
    ASSERT_TRUE(words) << line;
    EXPECT_EQ(policy_magnitude(limits.at(policy), names().at(op), bin, bins, size),
              std::strtod(magnitude.c_str(), nullptr))
        << line;
    ++lines;
  }
  EXPECT_GT(lines, 3000);
}

// The stages that each kind of step may have come from, and its first number without the sign.
std::map<std::string, int> counts_of(const std::string& list, int samples,
                                     std::map<std::string, std::set<double>>& numbers) {
  const AugmentSpec spec(list, {64, 48});
  std::map<std::string, int> counts;
  Draws draws;
  for (int64_t sample = 0; sample < samples; ++sample) {
    draw_augmentation(spec, spec.output, 1, 0, sample, draws);
    if (draws.steps().empty()) ++counts["identity"];
    for (const PixelStep& step : draws.steps()) {
      const auto [name, place] = warp_of(step);
      ++counts[name];
      numbers[name].insert(step.values[place]);
    }
  }
  return counts;
}

TEST(AugmentPolicy, RandAugmentTakesEveryOperationEquallyOftenWithBothSigns) {
  std::map<std::string, std::set<double>> numbers;
  const auto counts = counts_of("random_augment(1, 9)", 28000, numbers);
  ASSERT_EQ(counts.size(), 14u);
  for (const auto& [name, count] : counts) EXPECT_NEAR(count, 2000, 5 * 45) << name;
  for (const char* name : {"rotate", "shear_x", "shear_y", "translate_x", "translate_y",
                           "brightness", "contrast", "saturation", "sharpness"}) {
    EXPECT_EQ(numbers[name].size(), 2u) << name;
  }
  const auto magnitude = [](PolicyOp op) {
    return policy_magnitude(kRandomAugmentLimits, op, 9, 31, {64, 48});
  };
  const double factor = magnitude(PolicyOp::brightness);
  EXPECT_EQ(numbers["brightness"], (std::set<double>{1 - factor, 1 + factor}));
  const double moved = std::trunc(magnitude(PolicyOp::translate_x));
  EXPECT_EQ(numbers["translate_x"], (std::set<double>{-moved, moved}));
  EXPECT_EQ(numbers["solarize"], (std::set<double>{255 * magnitude(PolicyOp::solarize)}));
  EXPECT_EQ(numbers["posterize"], (std::set<double>{magnitude(PolicyOp::posterize)}));
}

TEST(AugmentPolicy, RandAugmentRunsAsManyOperationsAsItSays) {
  Draws draws;
  int most = 0, all = 0;
  const AugmentSpec spec("random_augment(5, 9)", {64, 48});
  for (int64_t sample = 0; sample < 2000; ++sample) {
    draw_augmentation(spec, spec.output, 1, 0, sample, draws);
    const auto steps = static_cast<int>(draws.steps().size());
    most = std::max(most, steps);
    all += steps;
  }
  EXPECT_EQ(most, 5);
  EXPECT_NEAR(all, 2000 * 5 * 13 / 14, 5 * 27);  // the 14th is the identity
}

TEST(AugmentPolicy, TrivialAugmentTakesEveryMagnitude) {
  std::map<std::string, std::set<double>> numbers;
  const auto counts = counts_of("trivial_augment_wide", 56000, numbers);
  // Magnitude 0 moves nothing, so these come a thirty-first less often, and the identity more.
  for (const char* name : {"brightness", "contrast", "saturation", "sharpness", "solarize",
                           "posterize", "equalize", "autocontrast"}) {
    EXPECT_NEAR(counts.at(name), 4000, 5 * 63) << name;
  }
  EXPECT_EQ(numbers["brightness"].size(), 61u);
  EXPECT_EQ(numbers["solarize"].size(), 31u);
  EXPECT_EQ(numbers["posterize"], (std::set<double>{2, 3, 4, 5, 6, 7, 8}));
}

TEST(AugmentPolicy, AutoAugmentFollowsItsTable) {
  // In CIFAR-10's policy, brightness is in 4 of 25 pairs, with these probabilities.
  std::map<std::string, std::set<double>> numbers;
  const auto counts = counts_of("auto_augment('cifar10')", 50000, numbers);
  EXPECT_NEAR(counts.at("brightness"), 50000.0 / 25 * (0.6 + 0.7 + 0.9 + 0.1), 5 * 66);
  EXPECT_NEAR(counts.at("posterize"), 50000.0 / 25 * 0.3, 5 * 25);
  EXPECT_NEAR(counts.at("invert"), 50000.0 / 25 * (0.1 + 0.0 + 0.1), 5 * 20);
  std::map<std::string, std::set<double>> others;
  EXPECT_NEAR(counts_of("auto_augment", 50000, others).at("posterize"),
              50000.0 / 25 * (0.4 + 0.6 + 0.6 + 0.8 + 0.4), 5 * 72);
  EXPECT_NEAR(counts_of("auto_augment('svhn')", 50000, others).at("contrast"), 50000.0 / 25 * 0.3,
              5 * 25);
}

TEST(AugmentPolicy, AugMixBlendsWithSharesThatSumToOne) {
  const AugmentSpec spec("aug_mix(alpha=0.5, mixture_width=4)", {32, 32});
  Draws draws;
  double own = 0, own_squares = 0;
  std::map<int, int> depths;
  constexpr int kSamples = 20000;
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    draw_augmentation(spec, spec.output, 1, 0, sample, draws);
    double sum = 0;
    for (const PixelStep& step : draws.steps()) {
      const std::string name = step.kind->name;
      if (name == "blend_begin" || name == "blend") sum += step.values[0];
    }
    ASSERT_NEAR(sum, 1, 1e-12);
    ASSERT_EQ(std::string(draws.steps().back().kind->name), "blend_end");
    const double share = draws.steps().front().values[0];
    own += share;
    own_squares += share * share;
  }
  // Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2a + 1)).
  const double mean = own / kSamples, variance = own_squares / kSamples - mean * mean;
  EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(0.125 / kSamples));
  EXPECT_NEAR(variance, 0.125, 0.005);
}

}  // namespace
}  // namespace stoker
