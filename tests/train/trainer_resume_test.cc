// Tests of runs that stop early: what is saved, and that a resumed run has the same result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <sstream>

#include "pipeline/durable_file.h"
#include "tests/support/fake_source.h"
#include "tests/support/temp_folder.h"
#include "tests/train/run_fixture.h"

namespace stoker {
namespace {

using testing::HasSubstr;

// A run that is stopped at any step and resumed with another number of replicas equals a run that
// was never stopped.
TEST(TrainerResume, ResumedAtEveryStepIsAsNeverStopped) {
  for (const AverageKind average : {AverageKind::none, AverageKind::lookahead}) {
    TrainOptions options = small_options();
    options.recipe.average.kind = average;
    options.recipe.average.every = 2;
    options.recipe.epochs = 2;
    const auto eval = small_source(20, 31);
    const RunOutcome whole = run_once(options, fake_engines(), 70, eval.get());
    for (int64_t stop = 1; stop <= 10; ++stop) {
      const TempFolder folder;
      options.out = folder.path();
      const auto source = small_source();
      RecordingObserver observer;
      options.resume = false;
      Trainer trainer(*source, eval.get(), options, observer, fake_engines());
      observer.at_step = [&](const StepReport& report) {
        if (report.step == stop) trainer.request_stop();
      };
      const TrainResult first = trainer.run();
      // The request takes effect in the next step or, at the end of an epoch, in its evaluation.
      EXPECT_TRUE(first.interrupted);
      EXPECT_EQ(first.step, stop % 5 == 0 ? stop : stop + 1);
      EXPECT_FALSE(first.eval);

      options.resume = true;
      options.replicas = 2;
      RecordingObserver second;
      Trainer resumed(*source, eval.get(), options, second, fake_engines());
      const TrainResult result = resumed.run();
      options.replicas = 1;
      EXPECT_FALSE(result.interrupted);
      EXPECT_EQ(resumed.weights_hash(), whole.hash) << "stopped at " << stop;
      EXPECT_EQ(result.loss, whole.result.loss);
      EXPECT_EQ(result.eval->top1, whole.result.eval->top1);
      EXPECT_EQ(metrics_of(folder.path(), "step").size(), 10u) << "stopped at " << stop;
      EXPECT_EQ(metrics_of(folder.path(), "epoch").size(), 2u) << "stopped at " << stop;
    }
  }
}

// The second moments and the number of updates are part of the state.
TEST(TrainerResume, AdamGoesOnWhereItStopped) {
  TrainOptions options = small_options();
  options.recipe.optimizer = with_optimizer(options.recipe.optimizer, OptimizerKind::adam);
  const RunOutcome whole = run_once(options, fake_engines());
  const TempFolder folder;
  options.out = folder.path();
  options.max_steps = 7;
  run_once(options, fake_engines());
  options.max_steps = 0;
  options.resume = true;
  options.replicas = 2;
  EXPECT_EQ(run_once(options, fake_engines()).hash, whole.hash);
  options.recipe.optimizer = with_optimizer(options.recipe.optimizer, OptimizerKind::adamw);
  EXPECT_THROW(run_once(options, fake_engines()), std::invalid_argument);
}

// As after a kill, nothing after the last checkpoint counts.
TEST(TrainerResume, ResumesFromTheLastCheckpointOfAKilledRun) {
  TrainOptions options = small_options();
  const RunOutcome whole = run_once(options, fake_engines());
  for (const int64_t crash : {4, 7, 11}) {
    const TempFolder folder;
    options.out = folder.path();
    options.resume = false;
    options.checkpoint_steps = 3;
    EXPECT_THROW(run_once(options, fake_engines({.throw_at_step = crash})), TrainingFailed);
    options.resume = true;
    const RunOutcome resumed = run_once(options, fake_engines());
    EXPECT_EQ(resumed.hash, whole.hash) << crash;
    EXPECT_EQ(resumed.result.loss, whole.result.loss);
    EXPECT_EQ(metrics_of(folder.path(), "step").size(), 15u);
  }
}

TEST(TrainerResume, AFinishedRunResumedIsOnlyEvaluated) {
  const TempFolder folder;
  TrainOptions options = small_options();
  options.out = folder.path();
  const auto eval = small_source(20, 31);
  const RunOutcome whole = run_once(options, fake_engines(), 70, eval.get());
  options.resume = true;
  std::atomic<int64_t> steps = 0;
  const RunOutcome again = run_once(options, fake_engines({.steps = &steps}), 70, eval.get());
  EXPECT_EQ(steps, 0);
  EXPECT_EQ(again.hash, whole.hash);
  EXPECT_EQ(again.result.eval->top1, whole.result.eval->top1);
  EXPECT_FALSE(again.result.interrupted);
}

TEST(TrainerResume, MaxStepsEndsTheRunAndKeepsTheSchedule) {
  const TempFolder folder;
  TrainOptions options = small_options();
  const RunOutcome whole = run_once(options, fake_engines());
  options.out = folder.path();
  options.max_steps = 7;
  EXPECT_EQ(run_once(options, fake_engines()).result.step, 7);
  options.max_steps = 0;
  options.resume = true;
  EXPECT_EQ(run_once(options, fake_engines()).hash, whole.hash);
}

TEST(TrainerResume, ResumeRefusesAnotherRun) {
  const TempFolder folder;
  TrainOptions options = small_options();
  options.out = folder.path();
  options.max_steps = 2;
  run_once(options, fake_engines());
  options.resume = true;
  const auto refused = [&](const std::string& why, auto change, int64_t samples = 70) {
    TrainOptions other = options;
    change(other);
    try {
      run_once(other, fake_engines(), samples);
      ADD_FAILURE() << why;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  refused("optimizer.momentum", [](TrainOptions& o) { o.recipe.optimizer.momentum = 0.5; });
  refused("seed", [](TrainOptions& o) { o.seed = 77; });
  refused("train: \"resize | random_crop(padding=2) | flip\" -> \"resize | flip\"",
          [](TrainOptions& o) { o.recipe.train.stages = StageList("resize | flip"); });
  refused("batch", [](TrainOptions& o) { o.recipe.batch = 8; });
  refused(
      "another configuration", [](TrainOptions&) {}, 71);
  EXPECT_NO_THROW(run_once(options, fake_engines()));
}

// A run that is killed between checkpoints has listed bad samples that it will read again.
TEST(TrainerResume, TheQuarantineListIsExactAfterAKill) {
  const std::string photo = read_whole_file(STOKER_GOLDEN_DIR "/pipeline/photo.jpg");
  FakeSource source({{photo.begin(), photo.end()}}, 70, 4);
  for (const SampleId id : {3, 17, 40, 69}) source.replace(id, {1, 2, 3});
  const auto list = [](const std::string& folder) {
    std::istringstream text(read_whole_file(folder + "/quarantine.jsonl"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  TrainOptions options = small_options();
  const auto run = [&](const std::string& out, const FakeEngineFaults& faults) {
    options.out = out;
    RecordingObserver observer;
    Trainer trainer(source, nullptr, options, observer, fake_engines(faults));
    trainer.run();
  };
  options.feed.max_bad = 0.5;
  const TempFolder whole, killed;
  run(whole.path(), {});
  EXPECT_EQ(list(whole.path()).size(), 12u);  // four, in each of three epochs
  EXPECT_THROW(run(killed.path(), {.throw_at_step = 9}), TrainingFailed);
  options.resume = true;
  run(killed.path(), {});
  EXPECT_EQ(list(killed.path()), list(whole.path()));
}

}  // namespace
}  // namespace stoker
