// When requests are tried again, and which are asked for a second time.
#include "pipeline/store/retry_policy.h"

#include <gtest/gtest.h>

#include "pipeline/store/hedge_rule.h"

namespace stoker {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Time = RetryBudget::Time;

TEST(RetryWait, DoublesAndEnds) {
  EXPECT_EQ(retry_wait(1, 0), nanoseconds(0));
  EXPECT_EQ(retry_wait(1, 0.5), milliseconds(50));
  EXPECT_EQ(retry_wait(2, 0.5), milliseconds(100));
  EXPECT_EQ(retry_wait(5, 0.5), milliseconds(800));
  EXPECT_EQ(retry_wait(9, 0.5), seconds(10));
  EXPECT_EQ(retry_wait(1000, 0.5), seconds(10));
}

TEST(RetryBudget, WaitsWhenItIsUsedUp) {
  RetryBudget budget;
  const Time now{seconds(5)};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(budget.take(now), nanoseconds(0));
  EXPECT_EQ(budget.take(now), milliseconds(50));
  EXPECT_EQ(budget.take(now), milliseconds(100));
  // Nobody comes before who has waited already.
  EXPECT_EQ(budget.take(now + milliseconds(100)), milliseconds(50));
}

TEST(RetryBudget, AnswersFillItAndNotMore) {
  RetryBudget budget;
  const Time now{seconds(5)};
  for (int i = 0; i < 100; ++i) budget.take(now);
  for (int i = 0; i < 5; ++i) budget.note_success();
  EXPECT_EQ(budget.take(now), nanoseconds(0));
  EXPECT_EQ(budget.take(now), milliseconds(50));
  for (int i = 0; i < 10000; ++i) budget.note_success();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(budget.take(now), nanoseconds(0));
  EXPECT_GT(budget.take(now), nanoseconds(0));
}

TEST(RecentTimes, HasTheLastOnes) {
  RecentTimes times;
  EXPECT_EQ(times.total(0.5), nanoseconds(0));
  for (int i = 1; i <= 1000; ++i) times.add(1 << 20, milliseconds(i), milliseconds(3 * i));
  EXPECT_EQ(times.size(), RecentTimes::kRanges);
  EXPECT_EQ(times.first_byte(0), milliseconds(745));
  EXPECT_EQ(times.first_byte(0.5), milliseconds(873));
  EXPECT_EQ(times.total(1), milliseconds(3000));
  EXPECT_DOUBLE_EQ(times.per_byte(1), 2000e6 / (1 << 20));
}

TEST(HedgeRule, ScalesWithTheSize) {
  RecentTimes times;
  // 50 ms, and 10 ns for each byte; one in ten is far slower, one in fifty hangs.
  for (int i = 0; i < 250; ++i) {
    const milliseconds first(i % 50 == 0 ? 5000 : i % 10 == 0 ? 200 : 50);
    times.add(1'000'000, first, first + milliseconds(10));
  }
  HedgeRule rule;
  rule.learn(times);
  EXPECT_EQ(rule.slow_after(0), milliseconds(200));
  EXPECT_EQ(rule.slow_after(10'000'000), milliseconds(300));
}

TEST(HedgeRule, KnowsLittleAtTheBeginning) {
  RecentTimes times;
  for (int i = 0; i < 19; ++i) times.add(1000, milliseconds(1), milliseconds(2));
  HedgeRule rule;
  rule.learn(times);
  EXPECT_EQ(rule.slow_after(0), seconds(2));
  times.add(1000, milliseconds(1), milliseconds(2));
  rule.learn(times);
  EXPECT_EQ(rule.slow_after(0), HedgeRule::kMin);
}

TEST(HedgeRule, AsksForATwentiethMore) {
  HedgeRule rule;
  const Time now{seconds(5)};
  rule.note_first_request(now);
  EXPECT_TRUE(rule.take_second_request(now));
  int second = 0;
  for (int i = 0; i < 999; ++i) {
    rule.note_first_request(now);
    second += rule.take_second_request(now) ? 1 : 0;
  }
  EXPECT_EQ(second, 50);
  for (int i = 0; i < 100'000; ++i) rule.note_first_request(now);
  second = 0;
  while (rule.take_second_request(now)) ++second;
  EXPECT_EQ(second, 16);
}

TEST(HedgeRule, AsksWhereEverythingWaits) {
  HedgeRule rule;
  Time now{seconds(5)};
  rule.note_first_request(now);
  while (rule.take_second_request(now)) {
  }
  now += HedgeRule::kCalm;
  EXPECT_TRUE(rule.take_second_request(now));
  EXPECT_FALSE(rule.take_second_request(now));
  now += HedgeRule::kCalm - milliseconds(1);
  EXPECT_FALSE(rule.take_second_request(now));
  now += milliseconds(1);
  EXPECT_TRUE(rule.take_second_request(now));
}

}  // namespace
}  // namespace stoker
