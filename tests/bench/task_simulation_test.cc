// The simulation of tasks against times that can be calculated by hand.
#include "bench/suite/task_simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace stoker {
namespace {

const std::vector<SharedResource> kLinks = {{"a", 10}, {"b", 30}};

TEST(TaskSimulation, TasksWaitForThoseBeforeThem) {
  const auto times = simulate({}, {{{}, 2, 0, {}}, {{}, 3, 0, {}}, {{0, 1}, 1, 0, {}}});
  EXPECT_DOUBLE_EQ(times[0].end, 2);
  EXPECT_DOUBLE_EQ(times[2].begin, 3);
  EXPECT_DOUBLE_EQ(times[2].end, 4);
}

TEST(TaskSimulation, UnitsTakeTheirShareOfTheResource) {
  // Alone: 0.5 s of its own and 20 units at 10 per second.
  EXPECT_DOUBLE_EQ(simulate(kLinks, {{{}, 0.5, 20, {{0}}}})[0].end, 2.5);
  // A unit that takes two of the resource is half as quick.
  EXPECT_DOUBLE_EQ(simulate(kLinks, {{{}, 0, 20, {{0, 2}}}})[0].end, 4);
  // The slower of two resources counts.
  EXPECT_DOUBLE_EQ(simulate(kLinks, {{{}, 0, 30, {{0}, {1}}}})[0].end, 3);
}

TEST(TaskSimulation, TasksThatMeetShareUntilOneEnds) {
  // Both get 5 per second until the shorter one ends at 2 s; the rest goes at 10 per second.
  const auto times = simulate(kLinks, {{{}, 0, 10, {{0}}}, {{}, 0, 30, {{0}}}});
  EXPECT_DOUBLE_EQ(times[0].end, 2);
  EXPECT_DOUBLE_EQ(times[1].end, 4);
  // A task that comes later slows the first one from then on.
  const auto late = simulate(kLinks, {{{}, 0, 20, {{0}}}, {{}, 1, 10, {{0}}}});
  EXPECT_DOUBLE_EQ(late[0].end, 3);
  EXPECT_DOUBLE_EQ(late[1].end, 3);
}

// Max-min: the first task gets 10 of b's 30 per second, because a allows no more; the other two
// share what is left of b.
TEST(TaskSimulation, WhatATaskCannotUseIsLeftToTheOthers) {
  const auto times =
      simulate(kLinks, {{{}, 0, 100, {{0}, {1}}}, {{}, 0, 50, {{1}}}, {{}, 0, 50, {{1}}}});
  EXPECT_DOUBLE_EQ(times[1].end, 5);
  EXPECT_DOUBLE_EQ(times[2].end, 5);
  EXPECT_DOUBLE_EQ(times[0].end, 10);
}

// No matter how tasks meet, a resource gives no more than it has.
TEST(TaskSimulation, AResourceIsNeverUsedBeyondItsRate) {
  std::vector<SimulatedTask> tasks;
  double units = 0;
  for (int i = 0; i < 50; ++i) {
    const double own = 1 + (i * 7) % 13;
    tasks.push_back({{}, 0.1 * (i % 5), own, {{0}, {1, 1.0 + i % 3}}});
    if (i >= 10) tasks.back().after = {i - 10};
    units += own;
  }
  double end = 0;
  for (const TaskTimes& times : simulate(kLinks, tasks)) end = std::max(end, times.end);
  EXPECT_GE(end, units / 10 * (1 - 1e-9));
  EXPECT_LT(end, 2 * units / 10 + 5);
}

TEST(TaskSimulation, RefusesWhatMakesNoSense) {
  EXPECT_THROW(simulate({}, {{{0}, 1, 0, {}}}), std::invalid_argument);  // waits for itself
  EXPECT_THROW(simulate({}, {{{}, -1, 0, {}}}), std::invalid_argument);
  EXPECT_THROW(simulate({}, {{{}, 0, 1, {}}}), std::invalid_argument);  // units without a use
  EXPECT_THROW(simulate(kLinks, {{{}, 0, 1, {{2}}}}), std::invalid_argument);
  EXPECT_THROW(simulate(kLinks, {{{}, std::nan(""), 0, {}}}), std::invalid_argument);
  EXPECT_THROW(simulate({{"a", 0}}, {}), std::invalid_argument);
  EXPECT_THROW(simulate({{"a", 1e-300}}, {{{}, 0, 1e300, {{0}}}}), std::invalid_argument);
  EXPECT_THROW(simulate({}, {{{}, INFINITY, 0, {}}}), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
