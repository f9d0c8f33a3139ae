// Tests of whole training runs on device engines with plain loops as operations: how a Trainer
// works with engines that queue their work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/measure_hooks.h"
#include "tests/support/temp_folder.h"
#include "tests/train/device_fixture.h"
#include "tests/train/run_fixture.h"

namespace stoker {

namespace {

TrainOptions device_options(int replicas) {
  TrainOptions options = small_options(replicas);
  options.recipe.epochs = 1;
  options.recipe.batch = 8;
  options.recipe.micro_batch_size = 4;
  return options;
}

uint64_t weights_of(const TrainOptions& options, int64_t steps = 2) {
  const auto source = small_source(16);
  RecordingObserver observer;
  const EngineFactory engines = [](const NetSpec& net, const EngineOptions& engine, int) {
    return make_device_engine(net, engine, {}, nullptr);
  };
  Trainer trainer(*source, nullptr, options, observer, engines);
  const TrainResult result = trainer.run();
  EXPECT_EQ(result.step, steps);
  return trainer.weights_hash();
}

TEST(DeviceTrainer, BucketsAndReplicasLeaveTheSameBits) {
  const uint64_t alone = weights_of(device_options(1));
  for (const int64_t bucket_bytes : {int64_t{0}, int64_t{4000}, int64_t{25} << 20}) {
    TrainOptions options = device_options(2);
    options.bucket_bytes = bucket_bytes;
    EXPECT_EQ(weights_of(options), alone) << bucket_bytes;
  }
}

// Every device's metrics come some steps late, and each has its own.
TEST(DeviceTrainer, IndependentReplicasAreSavedAndResumedExactly) {
  TrainOptions options = device_options(2);
  options.reduce = ReduceKind::independent;
  options.recipe.epochs = 4;
  const auto train = [&](const std::string& out, int64_t max_steps, bool resume) {
    options.out = out;
    options.max_steps = max_steps;
    options.resume = resume;
    weights_of(options, max_steps > 0 ? max_steps : 8);
  };
  const auto state_of = [](const std::string& out, int replica) {
    const std::string path = newest_checkpoint(checkpoint_folder(out, replica));
    EXPECT_THAT(path, ::testing::HasSubstr("step_00000008"));
    return read_whole_file(path + "/state.safetensors");
  };
  const TempFolder whole, parts;
  train(whole.path(), 0, false);
  train(parts.path(), 5, false);
  train(parts.path(), 0, true);
  for (const int replica : {0, 1}) {
    EXPECT_TRUE(state_of(parts.path(), replica) == state_of(whole.path(), replica)) << replica;
  }
  EXPECT_TRUE(state_of(whole.path(), 0) != state_of(whole.path(), 1));
  EXPECT_EQ(metrics_of(whole.path(), "replica").size(), 8u);
}

TEST(DeviceTrainer, AResidentFeedReplaysTheFirstEpoch) {
  TrainOptions options = device_options(1);
  const uint64_t real = weights_of(options);
  MeasureHooks measure{.feed = FeedKind::resident};
  options.measure = &measure;
  for (const int slots : {0, 2}) {
    options.slots = slots;
    EXPECT_EQ(weights_of(options), real);
  }
  options.recipe.epochs = 2;
  weights_of(options, 4);
}

// Every replica's warning is reported once; the run continues.
TEST(DeviceTrainer, StepsThatCannotBeCapturedAreSaid) {
  const TempFolder folder;
  TrainOptions options = device_options(2);
  options.out = folder.path() + "/run";
  options.recipe.epochs = 2;
  const auto source = small_source(16);
  HostOpsState states[2];
  states[1].refuse_captures = true;
  RecordingObserver observer;
  const EngineFactory engines = [&](const NetSpec& net, const EngineOptions& engine, int replica) {
    return make_device_engine(net, engine, {}, &states[replica]);
  };
  Trainer trainer(*source, nullptr, options, observer, engines);
  EXPECT_EQ(trainer.run().step, 4);
  EXPECT_THAT(observer.messages,
              ::testing::ElementsAre("warning: cpu:1: no graphs: captures are refused"));
  const auto rows = metrics_of(options.out, "warning");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["warning"], "cpu:1: no graphs: captures are refused");
  EXPECT_GE(rows[0]["step"], 2);
  EXPECT_GT(states[0].launches, 0);
  EXPECT_EQ(states[1].captures, 1);
}

TEST(DeviceTrainer, GraphsThatWorkAreNotSpokenOf) {
  const TempFolder folder;
  TrainOptions options = device_options(1);
  options.out = folder.path() + "/run";
  const auto source = small_source(16);
  RecordingObserver observer;
  HostOpsState state;
  const EngineFactory engines = [&](const NetSpec& net, const EngineOptions& engine, int) {
    return make_device_engine(net, engine, {}, &state);
  };
  Trainer trainer(*source, nullptr, options, observer, engines);
  trainer.run();
  EXPECT_GT(state.launches, 0);
  EXPECT_TRUE(observer.messages.empty());
  EXPECT_TRUE(metrics_of(options.out, "warning").empty());
}

}  // namespace
}  // namespace stoker
