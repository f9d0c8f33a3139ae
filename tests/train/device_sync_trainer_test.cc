// Tests of whole training runs on device engines whose replicas synchronise their batch norms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/fake_device.h"
#include "tests/support/temp_folder.h"
#include "tests/train/device_fixture.h"
#include "tests/train/run_fixture.h"

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kSyncedSamples = 22;  // two steps, of which the last one has padded rows

TrainOptions device_sync_options(int replicas) {
  TrainOptions options = small_options(replicas);
  options.recipe.epochs = 1;
  options.sync_batch_norm = true;
  return options;
}

RunOutcome run_synced(const TrainOptions& options, const EngineFactory& engines = loop_engines()) {
  return run_once(options, engines, kSyncedSamples);
}

// Devices on which all is late, and to which replicas are dealt.
class LateDevices {
 public:
  // The last one fails after so many operations; -1: never.
  explicit LateDevices(int count, int64_t operations_left = -1) {
    for (int i = 0; i < count; ++i) {
      devices_.push_back(std::make_unique<testing::FakeDevice>(
          testing::FakeDeviceOptions{.name = "fake:" + std::to_string(i),
                                     .seed = static_cast<uint64_t>(i + 1),
                                     .max_delay_us = 30,
                                     .operations_left = i + 1 == count ? operations_left : -1}));
    }
  }
  ~LateDevices() {
    for (const auto& device : devices_) EXPECT_EQ(device->bytes_written_after_free(), 0);
  }

  EngineFactory engines() {
    return [this](const NetSpec& net, const EngineOptions& engine, int replica) {
      return std::make_unique<DeviceEngine>(
          net, engine, DeviceTuning{}, *devices_[static_cast<size_t>(replica) % devices_.size()],
          host_ops_factory());
    };
  }
  int64_t operations_of_last() const { return devices_.back()->operations(); }

 private:
  std::vector<std::unique_ptr<testing::FakeDevice>> devices_;
};

// Also in parts. The net has no ReLU, over whose edge rounding moves values.
TEST(DeviceSyncTrainer, ReplicasAreOneReplicaWithAllRows) {
  for (const int parts : {1, 2}) {
    const TempFolder folder;
    TrainOptions whole = small_options(1);
    whole.recipe = default_recipe("airnet-narrow");
    whole.recipe.train.stages = StageList("resize | flip");
    whole.recipe.epochs = 1;
    whole.recipe.batch = 16;
    whole.recipe.precision = Precision::fp32;
    whole.recipe.micro_batch_size = 16 / parts;
    whole.accumulate = parts;
    whole.out = folder.path() + "/whole";
    const RunOutcome expected = run_synced(whole);
    TrainOptions options = whole;
    options.replicas = 2;
    options.recipe.micro_batch_size = 8 / parts;
    options.sync_batch_norm = true;
    options.out = folder.path() + "/together";
    const RunOutcome together = run_synced(options);
    options.sync_batch_norm = false;
    options.out = folder.path() + "/apart";
    run_synced(options);
    EXPECT_NEAR(together.result.loss, expected.result.loss, 1e-5 * expected.result.loss);
    const TrainState state = state_of_run(whole.out);
    const TrainState same = state_of_run(folder.path() + "/together");
    const TrainState other = state_of_run(folder.path() + "/apart");
    const double near = relative_distance(same.parameters, state.parameters);
    EXPECT_LT(near, 1e-5);
    EXPECT_GT(relative_distance(other.parameters, state.parameters), 100 * near);
    EXPECT_LT(relative_distance(same.statistics, state.statistics), 1e-5);
  }
}

// However gradients are summed, and whenever devices are late.
TEST(DeviceSyncTrainer, BitsDependOnNeitherTheReductionNorTiming) {
  TrainOptions options = device_sync_options(2);
  options.recipe.micro_batch_size = 4;
  options.bucket_bytes = 0;
  const RunOutcome expected = run_synced(options);
  LateDevices one(1), two(2);
  for (const int64_t bucket_bytes : {0, 4000, 25 << 20}) {
    for (const ReduceKind reduce : {ReduceKind::automatic, ReduceKind::server}) {
      options.bucket_bytes = bucket_bytes;
      options.reduce = reduce;
      SCOPED_TRACE(std::to_string(bucket_bytes) + " " + to_string(reduce));
      EXPECT_EQ(run_synced(options).hash, expected.hash);
      EXPECT_EQ(run_synced(options, one.engines()).hash, expected.hash);
      EXPECT_EQ(run_synced(options, two.engines()).hash, expected.hash);
    }
  }
  options.sync_batch_norm = false;
  EXPECT_NE(run_synced(options).hash, expected.hash);
}

TEST(DeviceSyncTrainer, IsResumedExactlyAndOnlyAsItBegan) {
  const TempFolder folder;
  TrainOptions options = device_sync_options(2);
  options.recipe.epochs = 2;
  options.recipe.precision = Precision::bf16;
  const uint64_t whole = run_synced(options).hash;
  options.out = folder.path();
  options.max_steps = 3;
  run_synced(options);
  options.max_steps = 0;
  options.resume = true;
  TrainOptions without = options;
  without.sync_batch_norm = false;
  try {
    run_synced(without);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("this run has another sync_batch_norm: on -> off"));
  }
  EXPECT_EQ(run_synced(options).hash, whole);
}

TEST(DeviceSyncTrainer, SaysThatPassesHaveNoGraphsAndDoesNotWarn) {
  std::vector<HostOpsState> states(2);
  const auto source = small_source(kSyncedSamples);
  TrainOptions options = device_sync_options(2);
  options.recipe.epochs = 2;
  RecordingObserver observer;
  Trainer(*source, nullptr, options, observer, loop_engines(&states)).run();
  EXPECT_TRUE(observer.messages.empty());
  EXPECT_EQ(states[0].captures, 1);  // of the update
  EXPECT_GT(states[0].launches, 0);
  EXPECT_THAT(observer.plan,
              Contains("batch norm: synchronised, over 4 samples: a micro-batch of each of 2 "
                       "replicas; a replica gives 0.04 MiB to each of the others in a step; "
                       "passes are queued without graphs"));
}

TEST(DeviceSyncTrainer, ASingleReplicaIsAsWithoutIt) {
  TrainOptions options = device_sync_options(1);
  const uint64_t alone = run_synced(options).hash;
  options.sync_batch_norm = false;
  EXPECT_EQ(run_synced(options).hash, alone);
}

TEST(DeviceSyncTrainer, SaysThatNumbersOfSeveralDevicesGoThroughTheHost) {
  const auto source = small_source(kSyncedSamples);
  RecordingObserver observer;
  LateDevices devices(2);
  Trainer(*source, nullptr, device_sync_options(2), observer, devices.engines()).run();
  EXPECT_THAT(observer.plan,
              Contains("batch norm: synchronised, over 4 samples: a micro-batch of each of 2 "
                       "replicas; a replica gives 0.04 MiB to each of the others in a step, "
                       "through the host's memory; passes are queued without graphs"));
}

// The other replicas wait in a batch norm for one that never comes.
TEST(DeviceSyncTrainer, AReplicaThatFailsEndsTheRun) {
  for (const int count : {1, 3}) {
    LateDevices whole(count, int64_t{1} << 40);
    run_synced(device_sync_options(4), whole.engines());
    LateDevices failing(count, whole.operations_of_last() / 2);
    try {
      run_synced(device_sync_options(4), failing.engines());
      FAIL();
    } catch (const TrainingFailed& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("fake:" + std::to_string(count - 1) + ": the device has failed"));
    }
  }
}

}  // namespace
}  // namespace stoker
