#include "bench/report/statistics.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Statistics, QuantilesLieBetweenNeighbours) {
  const std::vector<double> values = {15, 20, 35, 40, 50};  // numpy.quantile gives the same
  EXPECT_DOUBLE_EQ(quantile(values, 0.4), 29);
  EXPECT_DOUBLE_EQ(quantile(values, 0), 15);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 50);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({7}), 7);
}

TEST(Statistics, DeviationIsTheMedianDistance) {
  EXPECT_DOUBLE_EQ(median_deviation({1, 1, 2, 2, 4, 6, 9}), 1);
  EXPECT_DOUBLE_EQ(median_deviation({5, 5, 5}), 0);
}

// Ranks and coverage of the binomial tables: n = 10 takes the 2nd and 9th value and covers with
// 0.9785, n = 20 the 6th and 15th with 0.9586.
TEST(Statistics, MedianIntervalTakesTheRanksOfTheBinomial) {
  std::vector<double> values;
  for (int i = 10; i >= 1; --i) values.push_back(i);
  Interval interval = median_interval(values);
  EXPECT_DOUBLE_EQ(interval.low, 2);
  EXPECT_DOUBLE_EQ(interval.high, 9);
  EXPECT_NEAR(interval.confidence, 0.978516, 1e-6);
  for (int i = 11; i <= 20; ++i) values.push_back(i);
  interval = median_interval(values);
  EXPECT_DOUBLE_EQ(interval.low, 6);
  EXPECT_DOUBLE_EQ(interval.high, 15);
  EXPECT_NEAR(interval.confidence, 0.958611, 1e-6);
}

TEST(Statistics, FewRepeatsGiveAllOfThemAndSayHowLittleThatIs) {
  const Interval five = median_interval({3, 1, 5, 2, 4});
  EXPECT_DOUBLE_EQ(five.low, 1);
  EXPECT_DOUBLE_EQ(five.high, 5);
  EXPECT_NEAR(five.confidence, 0.9375, 1e-9);
  EXPECT_DOUBLE_EQ(median_interval({3}).confidence, 0);
}

TEST(Statistics, SummaryHoldsAllOfIt) {
  const Summary summary = summarise({2, 9, 4, 1, 1, 6, 2});
  EXPECT_EQ(summary.count, 7);
  EXPECT_DOUBLE_EQ(summary.median, 2);
  EXPECT_DOUBLE_EQ(summary.deviation, 1);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.max, 9);
  EXPECT_NEAR(summary.interval.confidence, 0.984375, 1e-9);
}

}  // namespace
}  // namespace stoker
