#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/report/statistics.h"

namespace stoker {
namespace {

// Hollander, Wolfe and Chicken, example 4.1 (permeability of membranes): U = 15 pairs (W = 35),
// p = 0.1272 on one side.
const std::vector<double> kAtTerm = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
const std::vector<double> kEarlier = {1.15, 0.88, 0.90, 0.74, 1.21};

TEST(RankTest, GivesTheTextbooksPValue) {
  const RankTest test = mann_whitney(kAtTerm, kEarlier);
  EXPECT_TRUE(test.exact);
  EXPECT_DOUBLE_EQ(test.u, 15);
  EXPECT_NEAR(test.p, 2 * 0.1272, 1e-4);
}

TEST(RankTest, TheExactDistributionIsThatOfAllOrders) {
  // Every way to choose which 4 of 7 ranks are a's: the share with a U as extreme, counted.
  const std::vector<double> a = {1, 2, 4, 5}, b = {3, 6, 7};
  const RankTest test = mann_whitney(a, b);
  EXPECT_DOUBLE_EQ(test.u, 10);
  int extreme = 0, all = 0;
  std::vector<int> is_b = {0, 0, 0, 0, 1, 1, 1};
  do {
    int u = 0;
    for (int i = 0; i < 7; ++i) {
      for (int j = 0; j < i; ++j) u += is_b[i] && !is_b[j];
    }
    extreme += u >= 10 || u <= 2;
    ++all;
  } while (std::next_permutation(is_b.begin(), is_b.end()));
  EXPECT_EQ(all, 35);
  EXPECT_NEAR(test.p, static_cast<double>(extreme) / all, 1e-12);
}

TEST(RankTest, TiesTakeTheNormalApproximation) {
  // scipy.stats.mannwhitneyu([1,2,2,3,4,5,6,7], [5,6,6,7,8,9,10,11], method="asymptotic")
  const RankTest test = mann_whitney(std::vector<double>{1, 2, 2, 3, 4, 5, 6, 7},
                                     std::vector<double>{5, 6, 6, 7, 8, 9, 10, 11});
  EXPECT_FALSE(test.exact);
  EXPECT_DOUBLE_EQ(test.u, 58);
  const double ties = 6 + 6 + 24 + 6;  // 2, 5 and 7 twice, 6 three times
  const double deviation = std::sqrt(64.0 / 12 * (17 - ties / (16 * 15)));
  EXPECT_NEAR(test.p, std::erfc(25.5 / deviation / std::sqrt(2.0)), 1e-12);
  const std::vector<double> same(5, 3.0);
  EXPECT_DOUBLE_EQ(mann_whitney(same, same).p, 1);
}

TEST(RankTest, TheLeastPIsThatOfSidesThatDoNotMix) {
  EXPECT_NEAR(least_p(3, 3), 0.1, 1e-12);
  EXPECT_NEAR(least_p(5, 5), 2.0 / 252, 1e-12);
  const RankTest apart =
      mann_whitney(std::vector<double>{1, 2, 3, 4, 5}, std::vector<double>{6, 7, 8, 9, 10});
  EXPECT_NEAR(apart.p, least_p(5, 5), 1e-12);
}

TEST(RankTest, TheRatioIsHodgesAndLehmannsWithItsInterval) {
  // On logarithms this is what R's wilcox.test(conf.int = TRUE) returns for the differences: the
  // estimate is the median of all 50, and the interval is from the 9th to the 9th last.
  std::vector<double> a, b, differences;
  for (const double x : kAtTerm) a.push_back(std::exp(x));
  for (const double y : kEarlier) b.push_back(std::exp(y));
  const Ratio ratio = ratio_of(b, a);
  EXPECT_NEAR(std::log(ratio.value), 0.305, 1e-9);
  EXPECT_NEAR(std::log(ratio.interval.low), -0.15, 1e-9);
  EXPECT_NEAR(std::log(ratio.interval.high), 0.76, 1e-9);
  EXPECT_GE(ratio.interval.confidence, 0.95);
}

TEST(RankTest, ManyRepeatsGiveTheSameByApproximation) {
  std::mt19937 noise(7);
  std::lognormal_distribution<double> draw(0, 0.1);
  std::vector<double> a, b;
  for (int i = 0; i < 50; ++i) a.push_back(draw(noise)), b.push_back(1.05 * draw(noise));
  const Ratio exact = ratio_of(a, b);
  a.push_back(a.front() * 1.0001);
  const Ratio approximate = ratio_of(a, b);
  EXPECT_NEAR(approximate.value, exact.value, 0.005);
  EXPECT_NEAR(approximate.interval.low, exact.interval.low, 0.01);
  EXPECT_NEAR(approximate.interval.high, exact.interval.high, 0.01);
}

TEST(RankTest, HolmAdjustsInOrder) {
  const std::vector<double> adjusted = holm({0.01, 0.04, 0.03, 0.005});
  EXPECT_NEAR(adjusted[0], 0.03, 1e-12);  // 3 * 0.01
  EXPECT_NEAR(adjusted[1], 0.06, 1e-12);  // not below the one before it
  EXPECT_NEAR(adjusted[2], 0.06, 1e-12);  // 2 * 0.03
  EXPECT_NEAR(adjusted[3], 0.02, 1e-12);  // 4 * 0.005
}

}  // namespace
}  // namespace stoker
