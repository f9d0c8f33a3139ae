// The modelled feed compared with results that were calculated by hand.

#include "tools/profile/feed_model.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr int kModelSteps = 200;

// 10 rows per step; 1 ms to fill a row, 4 ms per step: 3 workers keep it fed.
FeedModel easy_feed() {
  FeedModel model;
  model.rows = 10;
  model.workers = 3;
  model.ring_depth = 4;
  model.fill_cpu_s = {1e-3};
  model.copy_s = {1e-3};
  model.hold_s = {3e-3};
  model.rest_s = {1e-3};
  return model;
}

double rate_of(const FeedModel& model) {
  return run_model(model, kModelSteps, 1).samples_per_second;
}

TEST(FeedModel, TheStepLimitsWhereTheFeedIsFaster) {
  FeedModel model = easy_feed();
  model.workers = 4;
  const ModelledRun run = run_model(model, kModelSteps, 1);
  EXPECT_NEAR(run.samples_per_second, 10 / 4e-3, 1);
  EXPECT_NEAR(run.input_wait_s, 0, 1e-6);
}

TEST(FeedModel, WorkersLimitWhereTheyAreSlower) {
  FeedModel model = easy_feed();
  model.workers = 1;
  const ModelledRun run = run_model(model, kModelSteps, 1);
  EXPECT_NEAR(run.samples_per_second, 1000, 5);
  EXPECT_NEAR(run.input_wait_s, 10e-3 - 4e-3, 0.1e-3);
  model.cpu_speed = 0.5;
  EXPECT_NEAR(rate_of(model), 500, 3);
}

TEST(FeedModel, WorkersShareTheCores) {
  FeedModel model = easy_feed();
  model.workers = 3;
  model.cores = 2;
  EXPECT_NEAR(rate_of(model), 2000, 20);
  model.cpu_speed = 0.5;  // others use the rest
  EXPECT_NEAR(rate_of(model), 1500, 20);
}

TEST(FeedModel, ReadingLimitsByThreadsAndTime) {
  FeedModel model = easy_feed();
  model.io_threads = 2;
  model.read_s = {2e-3};
  EXPECT_NEAR(rate_of(model), 1000, 5);
  model.io_threads = 0;  // the workers read: 3 ms per row
  EXPECT_NEAR(rate_of(model), 1000, 5);
}

// Rows in memory need no I/O thread and no buffer: if half of them are there, two threads are fast
// enough for the 2 ms of the others; if all are there, only the workers limit.
TEST(FeedModel, RowsInMemoryAreNotRead) {
  FeedModel model = easy_feed();
  model.io_threads = 2;
  model.read_s = {4e-3};
  EXPECT_NEAR(rate_of(model), 500, 5);
  model.cached_share = 0.5;
  EXPECT_NEAR(rate_of(model), 1000, 40);
  model.cached_share = 1;
  model.read_s.clear();
  EXPECT_NEAR(rate_of(model), 2500, 10) << "the step's";
}

TEST(FeedModel, WithOneSlabFillingAndStepTakeTurns) {
  FeedModel model = easy_feed();
  model.workers = 2;
  model.ring_depth = 1;
  // The slab is free again after 3 of the step's 4 ms.
  EXPECT_NEAR(rate_of(model), 10 / (5e-3 + 3e-3), 5);
  model.ring_depth = 2;
  EXPECT_NEAR(rate_of(model), 2000, 10);
}

TEST(FeedModel, CopiesOverlapFromTwoSlotsOn) {
  FeedModel model = easy_feed();
  model.workers = 8;
  model.zero_copy = false;
  model.copy_s = {6e-3};
  model.slots = 2;
  const ModelledRun two = run_model(model, kModelSteps, 1);
  EXPECT_NEAR(two.samples_per_second, 10 / 6e-3, 5);
  EXPECT_NEAR(two.copy_wait_s, 2e-3, 0.1e-3);
  EXPECT_NEAR(two.input_wait_s, 0, 1e-4);
  model.slots = 1;  // free again after 3 ms
  EXPECT_NEAR(rate_of(model), 10 / 9e-3, 5);
  model.slots = 0;  // in next()
  EXPECT_NEAR(rate_of(model), 10 / 10e-3, 5);
}

// One row in a hundred takes fifty times as long: the mean counts if the ring is long enough.
TEST(FeedModel, SlowRowsCountByTheirMeanWhereTheRingIsLong) {
  FeedModel model = easy_feed();
  model.workers = 2;
  model.fill_cpu_s.assign(100, 1e-3);
  model.fill_cpu_s[7] = 50e-3;
  model.hold_s = model.rest_s = {1e-6};
  model.ring_depth = 40;
  EXPECT_NEAR(rate_of(model), 2 / 1.49e-3, 150);
  const double long_ring = rate_of(model);
  model.ring_depth = 1;
  EXPECT_LT(rate_of(model), 0.9 * long_ring);
}

}  // namespace
}  // namespace stoker
