#include "tools/emulate/accelerator.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace stoker {
namespace {

class FakeClock final : public Clock {
 public:
  double seconds() override { return now_; }
  void sleep(double length) override { now_ += length + late_; }
  void pass(double length) { now_ += length; }
  void oversleep(double length) { late_ = length; }

 private:
  double now_ = 100, late_ = 0;
};

StepEnd alone(StepEnd end) { return end; }

TEST(Accelerator, KnowsTheMeasuredOnes) {
  EXPECT_NEAR(find_accelerator("a100").images_per_second(), 919.54, 0.01);
  EXPECT_NEAR(find_accelerator("h100").images_per_second(), 1785.71, 0.01);
  EXPECT_NEAR(find_accelerator("h100-training").images_per_second(), 7006, 1e-9);
  EXPECT_NEAR(find_accelerator("h200-training").images_per_second(), 7952, 1e-9);
  EXPECT_NEAR(find_accelerator("b200-retinanet").images_per_second(), 504.7, 0.1);
  EXPECT_EQ(find_accelerator("b200-retinanet").pass, 0.85);
  EXPECT_EQ(find_accelerator("h100").pass, 0.9);
  EXPECT_THROW(find_accelerator("b200"), std::invalid_argument);
  EXPECT_DOUBLE_EQ(accelerator_of_rate(500, 250).step_seconds, 0.5);
  EXPECT_THROW(accelerator_of_rate(0, 250), std::invalid_argument);
  EXPECT_THROW(accelerator_of_rate(500, 0), std::invalid_argument);
}

TEST(Accelerator, IsFullyUsedWhenNothingIsWaitedFor) {
  FakeClock clock;
  const auto run = run_accelerator(
      0.25, 9, [] { return true; }, alone, clock);
  const Utilisation used = utilisation(run, 0.25);
  EXPECT_DOUBLE_EQ(used.share, 1);
  EXPECT_EQ(used.steps, 8);
  EXPECT_DOUBLE_EQ(used.running_seconds, 2);
  EXPECT_DOUBLE_EQ(used.images_per_second(400), 1600);
}

TEST(Accelerator, LeavesTheFirstStepOut) {
  FakeClock clock;
  int64_t batches = 0;
  const auto run = run_accelerator(
      0.25, 5,
      [&] {
        clock.pass(batches++ == 0 ? 1000 : 0.0625);  // a pipeline that has to start up
        return true;
      },
      alone, clock);
  const Utilisation used = utilisation(run, 0.25);
  EXPECT_DOUBLE_EQ(used.share, 0.8);
  EXPECT_DOUBLE_EQ(used.waiting_seconds, 0.25);
  EXPECT_DOUBLE_EQ(used.running_seconds, 1.25);
}

TEST(Accelerator, CountsWaitingForTheOthersAsNotComputing) {
  FakeClock clock;
  const auto others = [&](StepEnd end) {
    clock.pass(0.125);
    return StepEnd{.done = end.done + 0.125};
  };
  const auto run = run_accelerator(
      0.5, 3, [] { return true; }, others, clock);
  const Utilisation used = utilisation(run, 0.5);
  EXPECT_DOUBLE_EQ(used.running_seconds, 2 * 0.5 + 2 * 0.125);
  EXPECT_DOUBLE_EQ(used.share, 1 / 1.25);
  EXPECT_DOUBLE_EQ(used.waiting_seconds, 0);
  EXPECT_DOUBLE_EQ(used.others_seconds, 2 * 0.125);
}

// Runs one accelerator beside others, whose steps end as the test says.
TEST(Accelerator, EverySecondOfTheRunHasAName) {
  FakeClock clock;
  clock.oversleep(0.375);  // more than a step: late
  int64_t step = 0;
  const auto next = [&] {
    if (step++ % 3 == 0) clock.pass(0.75);
    return true;
  };
  const auto others = [&](StepEnd end) {
    const StepEnd slower{.done = end.done + (step % 2 == 0 ? 0.0625 : -1), .late = 0.03125};
    const StepEnd both[] = {end, slower};
    return end_of_all(both);
  };
  const auto run = run_accelerator(0.25, 12, next, others, clock);
  const Utilisation used = utilisation(run, 0.25);
  EXPECT_GT(used.waiting_seconds, 0);
  EXPECT_GT(used.others_seconds, 0);
  EXPECT_GT(used.late_seconds, 0);
  EXPECT_NEAR(used.running_seconds,
              used.share * used.running_seconds + used.waiting_seconds + used.others_seconds +
                  used.late_seconds,
              1e-9);
}

TEST(Accelerator, WhatTheMachineDidToOneIsNotTheFeedsForTheOthers) {
  const StepEnd ends[] = {{.done = 5}, {.done = 4.5, .late = 1}, {.done = 4}};
  const StepEnd all = end_of_all(ends);
  EXPECT_DOUBLE_EQ(all.done, 5);
  EXPECT_DOUBLE_EQ(all.late, 0.5);
  const StepTimes first{.done = 3, .all = {.done = 3}};
  const StepTimes second{.asked = 3, .came = 3, .done = 4, .all = all};
  const StepTimes both[] = {first, second};
  const Utilisation used = utilisation(both, 1);
  EXPECT_DOUBLE_EQ(used.running_seconds, 2.5);
  EXPECT_DOUBLE_EQ(used.others_seconds, 1);  // for the one whose batch came later
  EXPECT_DOUBLE_EQ(used.late_seconds, 0.5);
  EXPECT_DOUBLE_EQ(used.fed_share(), 0.5);
}

TEST(Accelerator, ALateWakeUpIsMadeUpForInTheNextStep) {
  FakeClock clock;
  clock.oversleep(0.25);
  const auto run = run_accelerator(
      0.75, 5, [] { return true; }, alone, clock);
  const Utilisation used = utilisation(run, 0.75);
  EXPECT_DOUBLE_EQ(used.share, 1);
  EXPECT_DOUBLE_EQ(used.late_seconds, 0);
  EXPECT_DOUBLE_EQ(used.running_seconds, 4 * 0.75);  // it takes as much as a real one
}

TEST(Accelerator, WhatAStepCannotMakeUpForIsTheMachinesDoing) {
  FakeClock clock;
  clock.oversleep(1);
  const auto run = run_accelerator(
      0.25, 9, [] { return true; }, alone, clock);
  const Utilisation used = utilisation(run, 0.25);
  EXPECT_GT(used.late_seconds, 0);
  EXPECT_LT(used.share, 0.5);
  EXPECT_DOUBLE_EQ(used.fed_share(), 1);
  EXPECT_DOUBLE_EQ(used.waiting_seconds, 0);
}

// Late wake-ups give a slow feed time; its total output is what counts.
TEST(Accelerator, AFeedThatIsTooSlowIsSeenThroughLateWakeUps) {
  for (const double late : {0.0, 0.0625, 0.125}) {
    FakeClock clock;
    clock.oversleep(late);
    double ready = clock.seconds();
    const auto next = [&] {
      ready += 0.3125;  // one is needed every 0.25 s
      if (clock.seconds() < ready) clock.pass(ready - clock.seconds());
      return true;
    };
    const auto run = run_accelerator(0.25, 200, next, alone, clock);
    const Utilisation used = utilisation(run, 0.25);
    EXPECT_NEAR(used.share, 0.8, 0.01) << late;
    EXPECT_NEAR(used.fed_share(), 0.8, 0.01) << late;
    EXPECT_NEAR(used.waiting_seconds / used.running_seconds, 0.2, 0.01) << late;
  }
}

TEST(Accelerator, AFeedThatEndsEndsTheRun) {
  FakeClock clock;
  int left = 3;
  const auto run = run_accelerator(
      0.5, 10, [&] { return left-- > 0; }, alone, clock);
  EXPECT_EQ(run.size(), 3u);
  EXPECT_EQ(utilisation(run, 0.5).steps, 2);
  left = 1;
  const auto single = run_accelerator(
      0.5, 10, [&] { return left-- > 0; }, alone, clock);
  EXPECT_EQ(utilisation(single, 0.5).steps, 0);
  EXPECT_EQ(utilisation(single, 0.5).share, 0);
}

}  // namespace
}  // namespace stoker
