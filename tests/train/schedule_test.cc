#include "train/model/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace stoker {
namespace {

TEST(Schedule, ConstantIsOne) {
  for (int64_t step = 0; step < 10; ++step) EXPECT_EQ(schedule_factor({}, step, 10, 5), 1);
}

TEST(Schedule, StepFallsAtTheMilestones) {
  ScheduleSpec spec;
  spec.kind = ScheduleKind::step;
  spec.milestones = {0.5, 0.75};
  EXPECT_EQ(schedule_factor(spec, 499, 1000, 10), 1);
  EXPECT_EQ(schedule_factor(spec, 500, 1000, 10), 0.1);
  EXPECT_EQ(schedule_factor(spec, 749, 1000, 10), 0.1);
  EXPECT_NEAR(schedule_factor(spec, 750, 1000, 10), 0.01, 1e-15);
}

TEST(Schedule, CosineRunsFromTheEndOfTheWarmUpToTheEndOfTheRun) {
  ScheduleSpec spec;
  spec.kind = ScheduleKind::cosine;
  spec.warmup_epochs = 2;
  EXPECT_NEAR(schedule_factor(spec, 0, 120, 10), 1 / 20.0, 1e-15);
  EXPECT_NEAR(schedule_factor(spec, 9, 120, 10), 0.5, 1e-15);
  EXPECT_EQ(schedule_factor(spec, 19, 120, 10), 1);
  EXPECT_EQ(schedule_factor(spec, 20, 120, 10), 1);
  EXPECT_NEAR(schedule_factor(spec, 70, 120, 10), 0.5, 1e-12);
  EXPECT_NEAR(schedule_factor(spec, 95, 120, 10), 0.5 - std::sqrt(0.125), 1e-12);
}

TEST(Schedule, WarmUpStartsWhereItIsTold) {
  ScheduleSpec spec;
  spec.warmup_epochs = 0.5;
  spec.warmup_start = 0.2;
  EXPECT_NEAR(schedule_factor(spec, 0, 100, 8), 0.4, 1e-15);
  EXPECT_NEAR(schedule_factor(spec, 3, 100, 8), 1.0, 1e-15);
  EXPECT_EQ(schedule_factor(spec, 4, 100, 8), 1);
}

TEST(Schedule, WarmUpMayBeANumberOfSteps) {
  ScheduleSpec spec;
  spec.warmup_steps = 5;
  EXPECT_NEAR(schedule_factor(spec, 0, 100, 8), 0.2, 1e-15);
  EXPECT_EQ(schedule_factor(spec, 4, 100, 8), 1);
  EXPECT_EQ(schedule_factor(spec, 5, 100, 8), 1);
  EXPECT_EQ(schedule_factor(spec, 1, 2, 8), 1);  // longer than the run
  EXPECT_NE(spec.describe().find("warm-up from 0 over 5 steps"), std::string::npos);
}

TEST(Schedule, WarmUpLongerThanTheRunIsARampOverAllOfIt) {
  ScheduleSpec spec;
  spec.kind = ScheduleKind::cosine;
  spec.warmup_epochs = 50;
  EXPECT_NEAR(schedule_factor(spec, 0, 4, 1), 0.25, 1e-15);
  EXPECT_EQ(schedule_factor(spec, 3, 4, 1), 1);
}

// The lambda of airbench94's LambdaLR, for its 476 steps.
TEST(Schedule, TriangleIsAirbenchs) {
  ScheduleSpec spec;
  spec.kind = ScheduleKind::triangle;
  spec.end = 0.07;
  const double up = std::floor(476 * 0.23);
  for (int64_t step = 0; step < 476; ++step) {
    const auto at = static_cast<double>(step);
    const double expected = at < up ? 0.2 * (1 - at / up) + at / up
                                    : 1 - (at - up) / (476 - up) + 0.07 * (at - up) / (476 - up);
    EXPECT_NEAR(schedule_factor(spec, step, 476, 48), expected, 1e-12) << step;
  }
}

TEST(Schedule, TriangleOfOneStepIsFinite) {
  ScheduleSpec spec;
  spec.kind = ScheduleKind::triangle;
  EXPECT_EQ(schedule_factor(spec, 0, 1, 1), 1);
}

TEST(Schedule, RefusesFieldsOutOfRange) {
  const auto refused = [](auto change) {
    ScheduleSpec spec;
    change(spec);
    EXPECT_THROW(spec.validate(), std::invalid_argument);
  };
  EXPECT_NO_THROW(ScheduleSpec().validate());
  refused([](ScheduleSpec& s) { s.warmup_epochs = -1; });
  refused([](ScheduleSpec& s) { s.warmup_epochs = NAN; });
  refused([](ScheduleSpec& s) { s.warmup_steps = -1; });
  refused([](ScheduleSpec& s) { s.warmup_steps = 5, s.warmup_epochs = 1; });
  refused([](ScheduleSpec& s) { s.kind = ScheduleKind::triangle, s.warmup_steps = 5; });
  refused([](ScheduleSpec& s) { s.peak = 0; });
  refused([](ScheduleSpec& s) { s.milestones = {0.5, 0.5}; });
  refused([](ScheduleSpec& s) { s.milestones = {1.0}; });
  refused([](ScheduleSpec& s) { s.kind = ScheduleKind::step; });
  refused([](ScheduleSpec& s) {
    s.kind = ScheduleKind::triangle;
    s.warmup_epochs = 1;
  });
}

}  // namespace
}  // namespace stoker
