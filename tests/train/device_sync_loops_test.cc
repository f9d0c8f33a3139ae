// Tests of synchronised batch norms in the device engine on what only plain loops can have: devices
// that are late, convolutions that sum, and states of the operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/fake_device.h"
#include "tests/train/device_fixture.h"
#include "tests/train/sync_norm_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

SyncReplicas::Make loops(const NetSpec& net, HostOpsState* state = nullptr) {
  return
      [=](const EngineOptions& options) { return started_device_engine(net, options, {}, state); };
}

// Copies and events of all streams come late, and new memory is poison.
TEST(DeviceSyncLoops, WaitForWhatIsLate) {
  const NetSpec net = many_norms();
  const SyncShape shape{3, 2, 2};
  const auto train = [&](const SyncReplicas::Make& make) {
    MeetingReplicas replicas(net, shape, Precision::fp32, make);
    for (uint32_t step = 0; step < 3; ++step) replicas->step(step);
    return state_of(replicas[1]);
  };
  const Trained expected = train(loops(net));
  for (const uint64_t seed : {1, 2, 3}) {
    testing::FakeDevice one({.seed = seed, .max_delay_us = 30});
    testing::FakeDevice another({.name = "another", .seed = seed + 3, .max_delay_us = 30});
    for (const bool several : {false, true}) {
      EXPECT_TRUE(train([&](const EngineOptions& options) {
                    testing::FakeDevice& device = several && options.rank == 1 ? another : one;
                    auto engine = std::make_unique<DeviceEngine>(net, options, DeviceTuning{},
                                                                 device, host_ops_factory());
                    engine->write(StateKind::parameters, initial_parameters(net, {1}));
                    return engine;
                  }) == expected)
          << seed << several;
      EXPECT_EQ(one.bytes_written_after_free() + another.bytes_written_after_free(), 0);
    }
  }
}

// The sums of a convolution are of x itself, without an origin.
TEST(DeviceSyncLoops, TakesTheSumsOfConvolutions) {
  const NetSpec net = many_norms();
  HostOpsState state;
  state.summing_convolutions = true;
  MeetingReplicas replicas(net, {2, 1, 4}, Precision::fp32, loops(net, &state));
  const std::vector<std::string> names = replicas[0].implementations();
  ASSERT_THAT(names, ::testing::Contains("conv with sums:host"));
  expect_united_step(net, replicas.all(), true);
}

// A pass that meets others is queued in each step, and that is no failure. Updates are captured.
TEST(DeviceSyncLoops, OnlyUpdatesAreCaptured) {
  const NetSpec net = many_norms();
  for (const bool synchronised : {true, false}) {
    HostOpsState states[2];
    int next = 0;
    MeetingReplicas replicas(
        net, {2, 2, 2}, Precision::fp32,
        [&](const EngineOptions& options) {
          return started_device_engine(net, options, {}, &states[next++]);
        },
        synchronised);
    for (uint32_t step = 0; step < 3; ++step) replicas->step(step);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(states[rank].captures, synchronised ? 1 : 2);
      EXPECT_EQ(replicas[rank].warning(), "");
    }
  }
}

// The steps between which replicas meet take together what one step takes, and two numbers per
// channel, which are not counted.
TEST(DeviceSyncLoops, MoveAsManyBytes) {
  const NetSpec net = make_net("resnet20", {16, 16}, 10);
  const EngineOptions options = engine_options(8, 8);
  const DeviceTuning tuning;
  const GradientLayout layout(net, device_fusion(tuning));
  const auto plan_of = [&](DeviceNormExchange* norms) {
    return build_device_program(net, plan_options(options, device_fusion(tuning), true), tuning,
                                layout, nullptr, norms)
        .plan;
  };
  const auto bytes_of_steps = [](const ExecutionPlan& plan) {
    int64_t bytes = 0;
    for (const PlanStep& step : plan.steps) bytes += step.bytes;
    return bytes;
  };
  DeviceNormExchange norms(2, most_numbers(net));
  const ExecutionPlan apart = plan_of(nullptr), together = plan_of(&norms);
  EXPECT_EQ(bytes_of_steps(together), bytes_of_steps(apart));
  // Each of the 19 norms has a step more in either direction.
  EXPECT_EQ(together.steps.size(), apart.steps.size() + 2 * 19);
}

TEST(DeviceSyncLoops, CannotBeProfiledAlone) {
  const NetSpec net = many_norms();
  MeetingReplicas replicas(net, {2, 1, 4}, Precision::fp32, loops(net));
  EXPECT_THROW(dynamic_cast<DeviceEngine&>(replicas[0]).profile(1), std::logic_error);
}

}  // namespace
}  // namespace stoker
