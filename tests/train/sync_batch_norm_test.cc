// Tests of runs whose replicas synchronise their batch norms: they are as one replica with all
// rows, are resumed exactly, end if one replica fails, and are refused where batch norms cannot
// meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/support/temp_folder.h"
#include "tests/train/processes_fixture.h"

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Five steps of 16 samples, of which the last one has six, in micro-batches of 2 per replica.
TrainOptions sync_options(int replicas, const std::string& out = "") {
  TrainOptions options = small_options(replicas);
  options.recipe.epochs = 1;
  options.sync_batch_norm = true;
  options.out = out;
  return options;
}

double distance_between(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

std::string sync_refusal(const TrainOptions& options,
                         const EngineFactory& engines = fake_engines()) {
  try {
    run_once(options, engines);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

nlohmann::json config_of(const std::string& out) {
  return nlohmann::json::parse(read_whole_file(out + "/config.json"));
}

class SyncBatchNormOption : public ::testing::Test {
 protected:
  const TempFolder out_;
};

class SyncBatchNorm : public SyncBatchNormOption {
 protected:
  void SetUp() override {
    if (!cpu_engine_available()) GTEST_SKIP() << "built without oneDNN";
  }
};

// Also in parts, and with padded rows: the second batch has six samples. The net has no ReLU, over
// whose edge rounding moves values.
TEST_F(SyncBatchNorm, ReplicasAreOneReplicaWithAllRows) {
  for (const int parts : {1, 2}) {
    const std::string folder = out_.path() + "/" + std::to_string(parts);
    TrainOptions whole = small_options(1);
    whole.recipe = default_recipe("airnet-narrow");
    whole.recipe.train.stages = StageList("resize | flip");
    whole.recipe.epochs = 1;
    whole.recipe.batch = 16;
    whole.recipe.precision = Precision::fp32;
    whole.recipe.micro_batch_size = 16 / parts;
    whole.accumulate = parts;
    whole.out = folder + "/whole";
    const RunOutcome expected = run_once(whole, {}, 22);
    TrainOptions options = whole;
    options.replicas = 4;
    options.sync_batch_norm = true;
    options.out = folder + "/together";
    options.recipe.micro_batch_size = 4 / parts;
    const RunOutcome together = run_once(options, {}, 22);
    options.sync_batch_norm = false;
    options.out = folder + "/apart";
    run_once(options, {}, 22);
    EXPECT_NEAR(together.result.loss, expected.result.loss, 1e-5 * expected.result.loss);
    const TrainState state = state_of_run(whole.out);
    const TrainState same = state_of_run(folder + "/together");
    const TrainState other = state_of_run(folder + "/apart");
    const double near = distance_between(same.parameters, state.parameters);
    EXPECT_LT(near, 1e-5);
    EXPECT_GT(distance_between(other.parameters, state.parameters), 100 * near);
    EXPECT_LT(distance_between(same.statistics, state.statistics), 1e-5);
  }
}

TEST_F(SyncBatchNorm, BitsDependOnNeitherThreadsNorTiming) {
  TrainOptions options = sync_options(2);
  const uint64_t hash = run_once(options, {}).hash;
  for (const int threads : {1, 2, 6, 6}) {
    options.threads = threads;
    EXPECT_EQ(run_once(options, {}).hash, hash) << threads;
  }
  options.reduce = ReduceKind::server;
  EXPECT_EQ(run_once(options, {}).hash, hash) << "with a parameter server";
  options.reduce = ReduceKind::automatic;
  options.replicas = 4;
  EXPECT_NE(run_once(options, {}).hash, hash) << "other samples meet";
}

TEST_F(SyncBatchNorm, ASingleReplicaIsAsWithoutIt) {
  TrainOptions options = sync_options(1, out_.path() + "/on");
  const auto source = small_source();
  RecordingObserver observer;
  Trainer trainer(*source, nullptr, options, observer);
  trainer.run();
  EXPECT_THAT(observer.plan,
              Contains("batch norm: a single replica has nothing to synchronise with"));
  options.sync_batch_norm = false;
  options.out = out_.path() + "/off";
  EXPECT_EQ(run_once(options, {}).hash, trainer.weights_hash());
  EXPECT_EQ(config_of(out_.path() + "/on").at("sync_batch_norm"), true);
  EXPECT_EQ(config_of(out_.path() + "/off").at("sync_batch_norm"), false);
  EXPECT_THAT(config_of(options.out).at("plan").dump(), Not(HasSubstr("batch norm: ")));
}

TEST_F(SyncBatchNorm, IsResumedExactlyAndOnlyAsItBegan) {
  TrainOptions options = sync_options(2);
  options.recipe.epochs = 2;
  const uint64_t whole = run_once(options, {}).hash;
  options.out = out_.path() + "/run";
  options.max_steps = 3;
  const auto source = small_source();
  {
    RecordingObserver observer;
    Trainer trainer(*source, nullptr, options, observer);
    trainer.run();
    // resnet20 has 688 channels with norms. Four micro-batches, two numbers per channel and pass.
    EXPECT_THAT(observer.plan, Contains("batch norm: synchronised, over 4 samples: a micro-batch "
                                        "of each of 2 replicas; a replica gives 0.04 MiB to each "
                                        "of the others in a step"));
  }
  options.resume = true;
  options.max_steps = 0;
  TrainOptions without = options;
  without.sync_batch_norm = false;
  EXPECT_THAT(sync_refusal(without, {}),
              HasSubstr("this run has another sync_batch_norm: on -> off"));
  EXPECT_EQ(run_once(options, {}).hash, whole);

  // On other devices batch norms see other samples, which is said.
  options.recipe.epochs = 3;
  options.replicas = 4;
  RecordingObserver observer;
  Trainer resumed(*source, nullptr, options, observer);
  EXPECT_THAT(resumed.plan().lines,
              Contains("note: batch norms see the samples of 4 replicas together, "
                       "before the checkpoint 2"));
  EXPECT_EQ(resumed.run().step, 15);
}

TEST_F(SyncBatchNormOption, ARunWithoutItIsNotResumedWithIt) {
  TrainOptions options = sync_options(2, out_.path() + "/run");
  options.sync_batch_norm = false;
  run_once(options, fake_engines());
  const std::string trainer = newest_checkpoint(out_.path() + "/run/checkpoints") + "/trainer.json";
  EXPECT_THAT(read_whole_file(trainer), Not(HasSubstr("sync_batch_norm")));
  options.resume = options.sync_batch_norm = true;
  EXPECT_THAT(sync_refusal(options), HasSubstr("this run has another sync_batch_norm: off -> on"));
}

// The first replica waits in its first batch norm for one that never comes.
TEST_F(SyncBatchNorm, AReplicaThatFailsEndsTheRun) {
  for (const int faulty : {0, 1}) {
    const EngineFactory engines = [&](const NetSpec& net, const EngineOptions& engine,
                                      int replica) {
      return replica == faulty ? make_fake_engine(net, engine, {.throw_at_step = 0})
                               : make_cpu_engine(net, engine);
    };
    try {
      run_once(sync_options(4), engines);
      FAIL();
    } catch (const TrainingFailed& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("training stopped after 0 steps: fake engine: told to throw"));
    }
  }
}

TEST_F(SyncBatchNormOption, IsRefusedWhereBatchNormsCannotMeet) {
  TrainOptions options = sync_options(2, out_.path() + "/none");
  for (const ReduceKind kind : {ReduceKind::independent, ReduceKind::none}) {
    options.reduce = kind;
    EXPECT_THAT(sync_refusal(options),
                HasSubstr(std::string("sync_batch_norm is on, but with reduce ") + to_string(kind) +
                          " replicas exchange nothing"));
  }
  options.reduce = ReduceKind::automatic;
  const auto source = small_source();
  const ProcessesOutcome outcome = run_processes(2, options, fake_engines(), *source);
  for (const std::string& thrown : outcome.thrown) {
    EXPECT_THAT(thrown, HasSubstr("sync_batch_norm is on, but only replicas of one process"));
  }
  options.recipe = default_recipe("alexnet");
  options.recipe.set_input({64, 64});
  options.recipe.batch = 16;
  for (const int replicas : {1, 2}) {
    options.replicas = replicas;
    EXPECT_THAT(sync_refusal(options),
                HasSubstr("sync_batch_norm is on, but alexnet has no batch norms"));
  }
  EXPECT_FALSE(std::filesystem::exists(options.out));
}

}  // namespace
}  // namespace stoker
