// Tests of runs that stop early: what is saved, and that a resumed run has the same result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "pipeline/files/durable_file.h"
#include "pipeline/receipt/receipt.h"
#include "tests/support/fake_source.h"
#include "tests/support/temp_folder.h"
#include "tests/train/run_fixture.h"

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

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

// Returns how often each sample of the first two epochs counted, from the receipts of a run that
// changed its batch once or more.
std::map<std::pair<int64_t, SampleId>, int> trained_samples(const std::string& folder) {
  std::map<std::pair<int64_t, SampleId>, int> counts;
  std::vector<std::string> parts = {folder};
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("before_step_")) {
      parts.push_back(entry.path().string());
    }
  }
  for (const std::string& part : parts) {
    const std::string steps = read_whole_file(part + "/receipt_steps.bin");
    const std::string rows = read_whole_file(part + "/receipt_rows.bin");
    size_t row = 0;
    for (size_t at = 0; at < steps.size(); at += sizeof(StepRecord)) {
      StepRecord step;
      std::memcpy(&step, steps.data() + at, sizeof step);
      for (uint32_t i = 0; i < step.rows; ++i, ++row) {
        RowRecord record;
        std::memcpy(&record, rows.data() + row * sizeof record, sizeof record);
        ++counts[{step.epoch, record.id}];
      }
    }
  }
  return counts;
}

// The position in the samples counts: with another batch, on other devices, an epoch goes
// on with the samples that have not come, and rate and epochs follow.
TEST(TrainerResume, AnotherBatchGoesOnAtTheSample) {
  for (const auto& [before, after] : {std::pair(16, 32), std::pair(16, 8), std::pair(24, 16)}) {
    for (const int64_t stop : {1, 2, 5, 6}) {
      SCOPED_TRACE(std::to_string(before) + " -> " + std::to_string(after) + " after " +
                   std::to_string(stop));
      const TempFolder folder;
      TrainOptions options = small_options();
      options.out = folder.path();
      options.recipe.epochs = 3;
      options.recipe.batch = before;
      options.recipe.micro_batch_size = 2;
      options.max_steps = stop;
      run_once(options, fake_engines());
      options.recipe.batch = after;
      options.replicas = 2;
      options.max_steps = 0;
      options.resume = true;
      RecordingObserver observer;
      const auto source = small_source();
      Trainer trainer(*source, nullptr, options, observer, fake_engines());
      const TrainResult result = trainer.run();
      EXPECT_FALSE(result.interrupted);
      EXPECT_EQ(result.epochs_done, 3);
      const auto counts = trained_samples(folder.path());
      EXPECT_EQ(counts.size(), 3u * 70);
      for (const auto& [sample, count] : counts) EXPECT_EQ(count, 1);
      // Steps go on; epochs are those of the samples.
      int64_t last_step = 0;
      double last_epochs = 0;
      for (const nlohmann::json& row : metrics_of(folder.path(), "step")) {
        EXPECT_EQ(row.at("step"), last_step + 1);
        EXPECT_GT(row.at("epochs_done"), last_epochs);
        last_step = row.at("step");
        last_epochs = row.at("epochs_done");
      }
      EXPECT_EQ(last_epochs, 3);
      EXPECT_EQ(last_step, result.step);
      EXPECT_EQ(result.total_steps, result.step);
      EXPECT_NEAR(observer.steps.back().learning_rate, 0.1 * after / 16 * 0.01, 1e-9);
      const int64_t steps = (70 + before - 1) / before;
      const std::string expected = "goes on at sample " + std::to_string(stop % steps * before) +
                                   " of epoch " + std::to_string(stop / steps) +
                                   " with a global batch of " + std::to_string(after) +
                                   ", before it was " + std::to_string(before);
      EXPECT_THAT(observer.plan, Contains(HasSubstr(expected)));
    }
  }
}

// The second run is stopped within the epoch that another batch began, at every step.
TEST(TrainerResume, ARunThatChangedItsBatchResumesExactly) {
  TrainOptions options = small_options();
  const TempFolder begun;
  options.out = begun.path();
  options.max_steps = 3;
  run_once(options, fake_engines());
  options.max_steps = 0;
  options.resume = true;
  options.recipe.batch = 8;
  const auto copy = [&](const TempFolder& to) {
    std::filesystem::copy(begun.path(), to.path(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
    options.out = to.path();
  };
  const TempFolder whole_folder;
  copy(whole_folder);
  const RunOutcome whole = run_once(options, fake_engines());
  for (const int64_t stop : {4, 6, 7, 12}) {
    const TempFolder folder;
    copy(folder);
    options.max_steps = stop;
    run_once(options, fake_engines());
    options.max_steps = 0;
    options.replicas = 2;
    const RunOutcome resumed = run_once(options, fake_engines());
    options.replicas = 1;
    EXPECT_EQ(resumed.hash, whole.hash) << stop;
    EXPECT_EQ(resumed.result.loss, whole.result.loss);
    EXPECT_EQ(read_whole_file(folder.path() + "/receipt_rows.bin"),
              read_whole_file(whole_folder.path() + "/receipt_rows.bin"));
  }
  // A crash before the first checkpoint with the new batch leaves what was set aside as it was.
  const TempFolder folder;
  copy(folder);
  EXPECT_THROW(run_once(options, fake_engines({.throw_at_step = 2})), TrainingFailed);
  EXPECT_EQ(run_once(options, fake_engines()).hash, whole.hash);
  EXPECT_EQ(trained_samples(folder.path()), trained_samples(whole_folder.path()));
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
  options.accumulate = 2;  // steps are counted whole
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
