#include <gtest/gtest.h>

#include <vector>

#include "bench/suite/scaling_table.h"

namespace stoker {
namespace {

// Returns the ends of steps with these lengths.
std::vector<double> ends_of(const std::vector<double>& lengths) {
  std::vector<double> ends;
  for (const double length : lengths) ends.push_back((ends.empty() ? 0 : ends.back()) + length);
  return ends;
}

TEST(StepTimes, WarmUpEndsWhereStepsHaveTheUsualLength) {
  const StepWarmUp slow_start = warm_up_of(ends_of({9, 3, 1, 1, 1.05, 1, 1, 1}));
  EXPECT_EQ(slow_start.steps, 2);
  EXPECT_DOUBLE_EQ(slow_start.seconds, 12);
  const StepWarmUp none = warm_up_of(ends_of({1, 1, 1, 1}));
  EXPECT_EQ(none.steps, 0);
  EXPECT_DOUBLE_EQ(none.seconds, 0);
}

// A single step of the usual length between slow ones is not the end.
TEST(StepTimes, WarmUpNeedsSeveralStepsInARow) {
  EXPECT_EQ(warm_up_of(ends_of({5, 1, 1, 5, 1, 1, 1, 1, 1, 1})).steps, 4);
}

// One slow step later is noise of a run that is warm.
TEST(StepTimes, ASlowStepLaterIsNotWarmUp) {
  EXPECT_EQ(warm_up_of(ends_of({5, 1, 1, 1, 1, 4, 1, 1})).steps, 1);
}

TEST(StepTimes, FasterStepsThanLaterAreWarm) {
  EXPECT_EQ(warm_up_of(ends_of({0.5, 0.5, 1, 1, 1, 1})).steps, 0);
}

TEST(StepTimes, WhatIsLeftAtTheEndIsEnough) {
  const StepWarmUp last = warm_up_of(ends_of({8, 8, 8, 1, 1.0}));
  EXPECT_EQ(last.steps, 3);
  EXPECT_DOUBLE_EQ(last.seconds, 24);
}

}  // namespace
}  // namespace stoker
