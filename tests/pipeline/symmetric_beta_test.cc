#include "pipeline/random/symmetric_beta.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace stoker {
namespace {

TEST(PortableMath, IsThatOfTheMathLibraryToAFewUnits) {
  const RandomKey key(1, 0, 0);
  for (uint32_t draw = 0; draw < 20000; ++draw) {
    const double tiny = std::ldexp(1 - key.uniform(draw), -static_cast<int>(draw % 130));
    const double log = std::log(tiny);
    ASSERT_NEAR(portable_log(tiny), log, 4e-16 * std::max(1.0, std::abs(log))) << tiny;
    const double near_one = 1 + key.uniform(draw, -1e-3, 1e-3);
    ASSERT_NEAR(portable_log(near_one), std::log(near_one), 1e-18 + 4e-16 * 1e-3) << near_one;
    const double power = key.uniform(draw, -699, 30);
    ASSERT_NEAR(portable_exp(power), std::exp(power), 1e-15 * std::exp(power)) << power;
  }
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(-1e300), 0);
}

// The bits themselves: they are in the pixels of every run.
TEST(SymmetricBeta, IsTheSameOnEveryMachine) {
  const RandomKey key(3, 1, 4);
  EXPECT_EQ(symmetric_beta(key, 0, 0.2), 0x1.0d0219da42c4p-36);
  EXPECT_EQ(symmetric_beta(key, 10, 0.4), 0x1.03f87598b4bc3p-7);
  EXPECT_EQ(symmetric_beta(key, 20, 0.5), 0x1.a0c3ef784e023p-1);
  EXPECT_EQ(symmetric_beta(key, 30, 1), 0x1.61c363a119e2p-1);
  EXPECT_EQ(symmetric_beta(key, 40, 2.5), 0x1.051a621dd0b5p-2);
  EXPECT_EQ(symmetric_beta(key, 50, 1000), 0x1.0433617f56f86p-1);
  EXPECT_EQ(symmetric_beta(key, 60, 0.001), 0x1.8e0fa9215c535p-503);
}

TEST(SymmetricBeta, HasTheMomentsOfItsDistribution) {
  for (const double alpha : {0.001, 0.1, 0.2, 0.4, 0.5, 0.51, 0.8, 1.0, 2.0, 8.0, 1000.0}) {
    constexpr int kDraws = 40000;
    double sum = 0, squares = 0, fourth = 0;
    for (int sample = 0; sample < kDraws; ++sample) {
      const double x = symmetric_beta(RandomKey(7, 2, sample), 5, alpha) - 0.5;
      ASSERT_LE(std::abs(x), 0.5);
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    const double kurtosis_moment = 3 * variance / (4 * (2 * alpha + 3));
    EXPECT_NEAR(sum / kDraws, 0, 4 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.03 * variance) << alpha;
    EXPECT_NEAR(fourth / kDraws, kurtosis_moment, 0.06 * kurtosis_moment) << alpha;
  }
}

TEST(SymmetricBeta, IsUniformForOne) {
  constexpr int kDraws = 40000, kBins = 20;
  int counts[kBins] = {};
  for (int sample = 0; sample < kDraws; ++sample) {
    ++counts[static_cast<int>(symmetric_beta(RandomKey(9, 0, sample), 0, 1) * kBins)];
  }
  // Five standard deviations of a bin.
  for (const int count : counts) EXPECT_NEAR(count, kDraws / kBins, 220);
}

TEST(SymmetricBeta, NeighboursDoNotRepeat) {
  std::set<double> seen;
  for (int sample = 0; sample < 5000; ++sample) {
    seen.insert(symmetric_beta(RandomKey(9, 0, sample), 0, 0.3));
  }
  EXPECT_EQ(seen.size(), 5000u);
}

}  // namespace
}  // namespace stoker
