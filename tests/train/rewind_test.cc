// A step of a run again: the rows are those of the receipt, a replay has the run's bits, and the
// sample that does not belong is named first.
#include "train/run/rewind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <set>

#include "pipeline/source/forwarding_source.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"
#include "tests/train/processes_fixture.h"
#include "tests/train/run_fixture.h"
#include "train/run/replay.h"
#include "train/run/sample_history.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

// Other labels and other pictures for some samples.
class DamagedSource final : public ForwardingSource {
 public:
  DamagedSource(const Source& source, std::set<SampleId> labels, std::set<SampleId> pictures)
      : ForwardingSource(source), labels_(std::move(labels)), pictures_(std::move(pictures)) {}

  int label(SampleId id) const override {
    const int label = source_.label(id);
    const auto classes = static_cast<int>(source_.class_names().size());
    return labels_.contains(id) ? (label + 1) % classes : label;
  }
  void read_targets(SampleId id, std::span<const uint8_t> bytes,
                    SampleTargets& out) const override {
    source_.read_targets(id, bytes, out);
    out.label = label(id);
  }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    const ReadStatus status = source_.read(id, buffer, bytes);
    if (!pictures_.contains(id)) return status;
    damaged(bytes.size(), id, buffer);
    bytes = {buffer.data(), bytes.size()};
    return status;
  }
  bool read_cached(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
    return false;
  }

 private:
  static void damaged(size_t size, SampleId id, std::vector<uint8_t>& buffer) {
    std::mt19937 random(static_cast<unsigned>(id));
    buffer.resize(std::max(buffer.size(), size));
    for (size_t i = 0; i < size; ++i) buffer[i] = static_cast<uint8_t>(random() % 2 * 255);
  }

  const std::set<SampleId> labels_, pictures_;
};

struct TestRun {
  TempFolder folder;
  TrainOptions options;
  std::unique_ptr<Source> source;

  explicit TestRun(const TrainOptions& wanted) : options(wanted), source(small_source()) {
    options.out = folder.path();
  }
  void train() { train_on(*source); }
  void train_on(const Source& data) {
    RecordingObserver observer;
    Trainer(data, nullptr, options, observer).run();
  }
  RunPlace place() const { return place_of_run(folder.path()); }
  Replay replay(int64_t number, const std::vector<std::vector<int>>& without = {},
                int parts = 0) const {
    return replay_on(*source, number, without, parts);
  }
  Replay replay_on(const Source& data, int64_t number,
                   const std::vector<std::vector<int>>& without = {}, int parts = 0) const {
    const FedStep step(data, options, place(), number);
    return replay_step(step, options, folder.path(), place(), number, data, without, parts);
  }
};

TrainOptions kept_options(int replicas = 1) {
  TrainOptions options = small_options(replicas);
  options.row_losses = true;
  options.checkpoint_steps = 2;
  options.keep_checkpoints = 100;
  return options;
}

TEST(Rewind, RowsAreThoseOfTheReceipt) {
  TrainOptions mixed = kept_options(2);
  mixed.accumulate = 2;
  mixed.recipe.train.mix.mixup_alpha = 0.5;
  mixed.recipe.train.mix.cutmix_alpha = 1;
  for (const TrainOptions& options : {kept_options(), mixed}) {
    TestRun run(options);
    run.options.max_steps = 6;
    run.train();
    run.options.max_steps = 0;
    run.options.resume = true;
    run.train();
    for (int64_t number = 0; number < 15; ++number) {
      const FedStep step(*run.source, run.options, run.place(), number);
      const ReceiptCheck check = check_receipt(run.folder.path(), step, number);
      EXPECT_TRUE(check.kept);
      EXPECT_TRUE(check.same) << number << ": " << check.text;
      std::vector<RowLoss> losses(16);
      RowLossFile file(run.folder.path(), 16);
      ASSERT_TRUE(file.find(number, losses));
      double sum = 0;
      for (int row = 0; row < 16; ++row) {
        const auto kept = from_row_loss(losses[static_cast<size_t>(row)]);
        ASSERT_EQ(kept.has_value(), step.batch().weights()[row] > 0);
        if (kept) sum += kept->loss;
      }
      const StepRow kept = read_steps(run.folder.path()).at(static_cast<size_t>(number));
      EXPECT_NEAR(sum, kept.loss_sum, kept.loss_sum / 100);
      EXPECT_GT(kept.gradient_norm, 0);
    }
  }
}

TEST(Rewind, SaysWhichRowsHaveChanged) {
  TestRun run(kept_options());
  run.train();
  const FedStep before(*run.source, run.options, run.place(), 3);
  const SampleId other = before.batch().ids()[5];
  const DamagedSource damaged(*run.source, {}, {other});
  const FedStep step(damaged, run.options, run.place(), 3);
  const ReceiptCheck check = check_receipt(run.folder.path(), step, 3);
  EXPECT_TRUE(check.kept);
  EXPECT_FALSE(check.same);
  EXPECT_EQ(check.changed, std::vector<int>{5});
  EXPECT_THAT(check.text, HasSubstr("NOT those of the receipt; 1 of 16 rows have changed"));
}

TEST(Rewind, ProcessesKeepTheLossesOfOneProcess) {
  TestRun one(kept_options(4));
  one.train();
  for (const bool messages : {true, false}) {
    TestRun two(kept_options(2));
    const auto how = ProcessesRun{.messages = messages};
    expect_clean(run_processes(2, two.options, {}, *two.source, how));
    for (const char* file : {"/steps.bin", "/row_losses.bin"}) {
      EXPECT_TRUE(read_whole_file(two.folder.path() + file) ==
                  read_whole_file(one.folder.path() + file))
          << file;
    }
  }
}

TEST(Rewind, LossesOfRowsNeedAnEngineThatGivesThem) {
  TestRun run(kept_options());
  RecordingObserver observer;
  EXPECT_THAT(
      problem_of([&] { Trainer(*run.source, nullptr, run.options, observer, fake_engines()); }),
      HasSubstr("row_losses: this engine does not give the loss of each row"));
}

TEST(Rewind, RefusesAStepThatTheRunDoesNotHave) {
  TestRun run(kept_options());
  run.train();
  EXPECT_THAT(problem_of([&] { FedStep(*run.source, run.options, run.place(), 15); }),
              HasSubstr("step 15: the run's recipe has steps 0 to 14"));
}

TEST(Rewind, ARunThatChangedItsBatchIsRewoundFromThereOn) {
  TestRun run(kept_options());
  run.options.max_steps = 7;
  run.train();
  run.options.max_steps = 0;
  run.options.resume = true;
  run.options.recipe.batch = 8;
  run.train();
  const RunPlace place = run.place();
  EXPECT_NE(place.more_steps, 0);
  for (const int64_t number : {7, 9, 12}) {
    const FedStep step(*run.source, run.options, place, number);
    const ReceiptCheck check = check_receipt(run.folder.path(), step, number - place.more_steps);
    EXPECT_TRUE(check.same) << number << ": " << check.text;
    EXPECT_EQ(run.replay(number).difference, "") << number;
  }
  EXPECT_THAT(problem_of([&] { FedStep(*run.source, run.options, place, 6); }),
              HasSubstr("step 6 is of another batch"));
}

TEST(Rewind, AReplayHasTheRunsBits) {
  TrainOptions parts = kept_options(2);
  parts.accumulate = 2;
  TrainOptions averaged = kept_options(2);
  averaged.recipe.average = {.kind = AverageKind::lookahead, .every = 3, .decay = 0.8};
  for (const TrainOptions& options : {kept_options(4), parts, averaged}) {
    TestRun run(options);
    run.train();
    for (const char* step : {"12", "14"}) {
      std::filesystem::remove_all(run.folder.path() + "/checkpoints/step_000000" + step);
    }
    for (const int64_t number : {0, 4, 13, 14}) {
      const Replay replay = run.replay(number);
      EXPECT_EQ(replay.difference, "") << number;
      EXPECT_EQ(replay.first_step, number == 0 ? 0 : number == 4 ? 4 : 10) << number;
      EXPECT_EQ(replay.compared, number - replay.first_step + 1);
      std::vector<RowLoss> kept(16);
      ASSERT_TRUE(RowLossFile(run.folder.path(), 16).find(number, kept));
      for (const RowShare& row : replay.rows) {
        EXPECT_EQ(to_row_loss(row.result), kept[static_cast<size_t>(row.row)]) << row.row;
      }
      EXPECT_FLOAT_EQ(static_cast<float>(replay.outcomes.at(0).gradient_norm),
                      read_steps(run.folder.path()).at(number).gradient_norm);
    }
  }
}

TEST(Rewind, AReplayOfOtherDataSaysSo) {
  TestRun run(kept_options());
  run.train();
  const FedStep step(*run.source, run.options, run.place(), 10);
  const DamagedSource damaged(*run.source, {}, {step.batch().ids()[2]});
  EXPECT_THAT(run.replay_on(damaged, 11).difference, HasSubstr("step 10: the loss is "));
}

TEST(Rewind, TheRowsPartsAddUpToTheWhole) {
  TestRun run(kept_options());
  run.train();
  const Replay replay = run.replay(9, {}, 16);
  ASSERT_EQ(replay.rows.size(), 6u);  // 70 samples are 4 steps of 16 rows, and one with padding
  double loss = 0, gradient = 0;
  for (const RowShare& row : replay.rows) {
    loss += row.loss;
    gradient += row.gradient;
  }
  EXPECT_NEAR(loss, 1, 1e-6);
  EXPECT_NEAR(gradient, 1, 1e-4);
}

TEST(Rewind, WithoutARowIsAStepOfItsWeightZero) {
  TestRun run(kept_options());
  run.train();
  const Replay replay = run.replay(8, {{3}, {3, 4}});
  ASSERT_EQ(replay.outcomes.size(), 3u);
  const double whole = replay.outcomes[0].loss;
  for (size_t i = 1; i < 3; ++i) {
    double sum = whole * 16, count = 16;
    for (const RowShare& row : replay.rows) {
      if (row.row != 3 && !(i == 2 && row.row == 4)) continue;
      sum -= row.result.loss;
      --count;
    }
    EXPECT_NEAR(replay.outcomes[i].loss, sum / count, 1e-5);
    EXPECT_NE(replay.outcomes[i].loss_after, replay.outcomes[0].loss_after);
  }
}

// The plain way: each step is fed again.
std::vector<SampleHistory> histories_by_feeding(const TestRun& run, int64_t steps) {
  std::vector<SampleHistory> histories(static_cast<size_t>(run.source->size()));
  RowLossFile file(run.folder.path(), run.options.recipe.batch);
  std::vector<RowLoss> losses(static_cast<size_t>(run.options.recipe.batch));
  for (int64_t number = run.place().first_step; number < steps; ++number) {
    const FedStep step(*run.source, run.options, run.place(), number);
    EXPECT_TRUE(file.find(number, losses));
    for (int row = 0; row < step.rows(); ++row) {
      if (step.batch().weights()[row] == 0) continue;
      const KeptRow kept = from_row_loss(losses[static_cast<size_t>(row)]).value();
      SampleHistory& history = histories[static_cast<size_t>(step.batch().ids()[row])];
      ++history.seen;
      history.right += kept.right;
      history.forgotten += history.was_right && !kept.right;
      history.was_right = kept.right;
      history.loss_sum += kept.loss;
    }
  }
  return histories;
}

TEST(Rewind, HistoriesAreThoseOfTheRowsThatWereFed) {
  TrainOptions drawn = kept_options(2);
  drawn.order = weighted_order(std::vector<double>(70, 1.0), {.length = 70});
  for (const bool changes : {false, true}) {
    TestRun run(changes ? kept_options() : drawn);
    run.options.max_steps = 8;
    run.train();
    run.options.max_steps = 0;
    run.options.resume = true;
    if (changes) run.options.recipe.batch = 20;
    run.train();
    const int64_t end = changes ? 8 + 2 + 4 : 15;
    const auto found = sample_histories(run.folder.path(), run.options, run.place(), 70);
    const auto plain = histories_by_feeding(run, end);
    uint32_t seen = 0;
    for (size_t id = 0; id < found.size(); ++id) {
      EXPECT_EQ(found[id].seen, plain[id].seen);
      EXPECT_EQ(found[id].right, plain[id].right);
      EXPECT_EQ(found[id].forgotten, plain[id].forgotten);
      EXPECT_EQ(found[id].loss_sum, plain[id].loss_sum);
      seen += found[id].seen;
    }
    EXPECT_GT(seen, 60u);
  }
}

// The rows of `ids` among those of a step.
std::set<SampleId> those_of(const FedStep& step, const std::set<SampleId>& ids) {
  std::set<SampleId> found;
  for (int row = 0; row < step.rows(); ++row) {
    const SampleId id = step.batch().ids()[row];
    if (ids.contains(id)) found.insert(id);
  }
  return found;
}

// 30 of 1500 samples have a wrong label, and 30 a picture of noise. Once the net has learned a bit,
// most steps whose loss stands out have one of them, and those that the net never gets right are
// among them.
TEST(Rewind, NamesTheSampleBehindASpikeFirst) {
  const auto clean = small_source(1500);
  std::set<SampleId> labels, pictures, all;
  for (int i = 0; i < 30; ++i) {
    labels.insert(i * 50 + i % 5);
    pictures.insert(i * 50 + 25 + i % 5);
  }
  std::ranges::set_union(labels, pictures, std::inserter(all, all.begin()));
  const DamagedSource damaged(*clean, labels, pictures);
  constexpr int kTrials = 20;
  int spikes = 0, first = 0;
  for (const uint64_t seed : {5, 6}) {
    TrainOptions options = kept_options();
    options.seed = seed;
    options.recipe.batch = 24;
    options.recipe.epochs = 4;
    options.checkpoint_steps = 6;
    TestRun run(options);
    run.train_on(damaged);
    int never = 0, wrong = 0;
    const auto histories = sample_histories(run.folder.path(), options, run.place(), 1500);
    for (SampleId id = 0; id < 1500; ++id) {
      if (!histories[static_cast<size_t>(id)].never_learned()) continue;
      ++never;
      wrong += all.contains(id) ? 1 : 0;
    }
    EXPECT_GE(wrong, 25);
    EXPECT_GE(20 * wrong, 19 * never) << wrong << " of " << never;
    const std::vector<StepRow> steps = read_steps(run.folder.path());
    for (const Spike& spike : find_spikes(steps, 2)) {
      if (spike.step < 63 || spike.loss_score < 2) continue;
      const FedStep step(damaged, run.options, run.place(), spike.step);
      if (those_of(step, all).empty() || spikes == kTrials) continue;
      ++spikes;
      const Replay replay = run.replay_on(damaged, spike.step, {}, 1);
      first += all.contains(step.batch().ids()[replay.rows.at(0).row]) ? 1 : 0;
    }
  }
  EXPECT_EQ(spikes, kTrials);
  EXPECT_GE(first, 19);
}

}  // namespace
}  // namespace stoker
