#include "tools/command/machine_plan.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "staging/batch_layout.h"

namespace stoker {
namespace {

FeedCost cost() {
  FeedCost cost;
  cost.cpu_ms = 1.5;
  cost.cpu_ms_low = 1.4;
  cost.cpu_ms_high = 1.6;
  cost.sample_bytes = 110'000;
  cost.worker_bytes = 1000;
  cost.size = {224, 224};
  return cost;
}

PlanDemand demand() { return {.gpus = 8, .rate = 3000, .batch = 256, .ring_depth = 4, .slots = 2}; }

TEST(Plan, IsTheArithmeticOfTheFormulae) {
  const MachinePlan plan = plan_machine(cost(), even_feed(cost(), demand()), demand());
  // 24,000 images/s of 1.5 ms each keep 36 cores busy; with a fifth left free that takes 45.
  EXPECT_DOUBLE_EQ(plan.busy_cores, 36);
  EXPECT_DOUBLE_EQ(plan.busy_cores_low, 33.6);
  EXPECT_DOUBLE_EQ(plan.busy_cores_high, 38.4);
  EXPECT_EQ(plan.workers, 36);
  EXPECT_EQ(plan.cores, 45);
  // Rows that all take the same time leave nobody waiting for the slowest.
  EXPECT_GT(plan.images_per_second, 0.99 * 24'000);
  EXPECT_LE(plan.images_per_second, 24'000 * (1 + 1e-9));
  EXPECT_EQ(plan.worker_bytes, 36'000);

  const BatchLayout layout({.rows = 256, .height = 224, .width = 224});
  EXPECT_EQ(plan.ring_bytes, 8 * 4 * static_cast<int64_t>(layout.slab_bytes()));
  EXPECT_EQ(plan.slot_bytes, 2 * static_cast<int64_t>(layout.device_bytes()));
  const double row = 224 * 224 * 3 + 4 + 4;  // pixels, label, weight
  EXPECT_NEAR(plan.bus_bytes_per_second, 3000 * row, 1e-6 * plan.bus_bytes_per_second);
  EXPECT_DOUBLE_EQ(plan.storage_bytes_per_second, 24'000.0 * 110'000);
  EXPECT_NEAR(plan.memory_bytes_per_second, 2 * 24'000 * (110'000 + row),
              1e-6 * plan.memory_bytes_per_second);
}

TEST(Plan, GrowsWithWhatIsAskedFor) {
  PlanDemand twice = demand();
  twice.rate *= 2;
  EXPECT_DOUBLE_EQ(plan_machine(cost(), even_feed(cost(), twice), twice).busy_cores, 72);
  PlanDemand no_room = demand();
  no_room.headroom = 0;
  EXPECT_EQ(plan_machine(cost(), even_feed(cost(), no_room), no_room).cores, 36);
}

// The mean is the same, but one row in eight takes eight times as long: a batch waits for it.
TEST(Plan, NeedsMoreWorkersWhereRowsDiffer) {
  PlanDemand few{.gpus = 1, .rate = 3300, .batch = 16, .ring_depth = 4, .slots = 0};
  FeedShape shape;
  shape.rows = 16;
  shape.ring_depth = few.ring_depth;
  RunMeasurements measured;
  measured.fill_cpu_s.assign(7, 0.8e-3);
  measured.fill_cpu_s.push_back(6.4e-3);
  measured.hold_s = measured.rest_s = {1e-9};
  measured.samples_per_second = 1 / 1.5e-3;
  const FeedWhatIf uneven(shape, measured, -1);
  const MachinePlan even = plan_machine(cost(), even_feed(cost(), few), few);
  const MachinePlan plan = plan_machine(cost(), uneven, few);
  EXPECT_GT(plan.workers, even.workers);
  EXPECT_GE(plan.cores, even.cores);
  EXPECT_TRUE(plan.feeds(few));
  // One batch at a time is filled between two steps, however many workers there are.
  few.ring_depth = 1;
  const MachinePlan starved = plan_machine(cost(), even_feed(cost(), few), few);
  EXPECT_FALSE(starved.feeds(few));
  EXPECT_GT(starved.waiting_share, 0.1);
  EXPECT_EQ(starved.workers, 16);  // a row each
}

// A machine for 40 GPUs is one for 16, two and a half times.
TEST(Plan, IsInProportionForManyGpus) {
  PlanDemand many = demand();
  many.gpus = 40;
  many.batch = 1 << 18;
  const MachinePlan plan = plan_machine(cost(), even_feed(cost(), many), many);
  EXPECT_DOUBLE_EQ(plan.busy_cores, 180);
  EXPECT_GE(plan.workers, 180);
  EXPECT_LE(plan.workers, 184);
  EXPECT_GT(plan.images_per_second, 0.99 * 120'000);
}

TEST(Plan, RefusesWhatMakesNoSense) {
  PlanDemand bad = demand();
  bad.rate = 0;
  EXPECT_THROW(plan_machine(cost(), even_feed(cost(), demand()), bad), std::invalid_argument);
  bad = demand();
  bad.headroom = 1;
  EXPECT_THROW(plan_machine(cost(), even_feed(cost(), demand()), bad), std::invalid_argument);
  EXPECT_THROW(plan_machine({}, even_feed(cost(), demand()), demand()), std::invalid_argument);
}

TEST(Plan, ReadsWhatTheFeedBenchWrote) {
  nlohmann::ordered_json report;
  report["results"] = {{"cpu_ms_per_image", 1.5},          {"cpu_ms_per_image_low", 1.4},
                       {"cpu_ms_per_image_high", 1.6},     {"mean_sample_bytes", 110'000.0},
                       {"scratch_bytes_per_worker", 1000}, {"image_size", {224, 160}}};
  const FeedCost read = feed_cost(report);
  EXPECT_DOUBLE_EQ(read.cpu_ms_high, 1.6);
  EXPECT_EQ(read.size.height, 160);
  EXPECT_EQ(read.worker_bytes, 1000);
  report["results"].erase("mean_sample_bytes");
  EXPECT_THROW(feed_cost(report), std::invalid_argument);
}

TEST(Plan, CpuNodesFillWhatTheOwnCoresDoNot) {
  PlanDemand demand;
  demand.gpus = 8;
  demand.rate = 3000;
  demand.headroom = 0.2;
  FeedCost cost;
  cost.cpu_ms = 1.6;  // 500 images/s of a core, less a fifth
  cost.size = {224, 224};
  const NodePlan plan =
      plan_nodes(cost, demand, {.local_cores = 16, .node_cores = 8, .link_gbit = 25});
  EXPECT_DOUBLE_EQ(plan.local_rate, 8000);
  EXPECT_DOUBLE_EQ(plan.remote_rate, 16000);
  EXPECT_DOUBLE_EQ(plan.node_rate, 4000);
  EXPECT_EQ(plan.nodes, 4);
  EXPECT_FALSE(plan.link_limits_node);
  // A row of 224 px has 150,528 bytes of pixels and less than 300 of labels and notes.
  EXPECT_GT(plan.bytes_per_second, 16000 * 150528.0);
  EXPECT_LT(plan.bytes_per_second, 16000 * 150828.0);
  EXPECT_TRUE(plan.link_suffices());

  const NodePlan slow =
      plan_nodes(cost, demand, {.local_cores = 0, .node_cores = 64, .link_gbit = 10});
  EXPECT_TRUE(slow.link_limits_node);
  EXPECT_NEAR(slow.node_rate, 8300, 20);
  EXPECT_EQ(slow.nodes, 3);
  EXPECT_FALSE(slow.link_suffices());

  EXPECT_EQ(plan_nodes(cost, demand, {.local_cores = 48}).nodes, 0);
  EXPECT_THROW(plan_nodes(cost, demand, {.local_cores = -1}), std::invalid_argument);
  EXPECT_THROW(plan_nodes(cost, demand, {.node_cores = 0}), std::invalid_argument);
  EXPECT_THROW(plan_nodes(cost, demand, {.link_gbit = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
