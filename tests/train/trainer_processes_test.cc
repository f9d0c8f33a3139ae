// Tests of one run over several processes, which are threads here: its bits, counts, files and end
// are those of a run in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_folder.h"
#include "tests/train/processes_fixture.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// With messages, like MPI, and without, like NCCL: the bits, files and ends must be the same.
class TrainerProcesses : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { with_messages = GetParam(); }

 public:
  static inline bool with_messages = true;  // for the current test
};

INSTANTIATE_TEST_SUITE_P(With, TrainerProcesses, ::testing::Bool(), [](const auto& param) {
  return param.param ? std::string("Messages") : std::string("Gathers");
});

ProcessesRun how(const Source* eval = nullptr) {
  return {.eval = eval, .messages = TrainerProcesses::with_messages};
}

// Every eighth sample cannot be read.
class FailingSource final : public Source {
 public:
  explicit FailingSource(int64_t samples) : source_(small_source(samples)) {}
  const SourceInfo& info() const override { return source_->info(); }
  int label(SampleId id) const override { return source_->label(id); }
  std::string name(SampleId id) const override { return source_->name(id); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    if (id % 8 == 3) return {false, "told to fail"};
    return source_->read(id, buffer, bytes);
  }

 private:
  std::unique_ptr<Source> source_;
};

// Batches in parts, then a resume in other processes with another batch: the receipts of process 0
// are those of runs in one process, with the same samples in the same rows.
TEST_P(TrainerProcesses, PartsAndAnotherBatchAreThoseOfOneProcess) {
  const auto source = small_source();
  const auto receipt_rows = [](const std::string& folder) {
    return read_whole_file(folder + "/receipt_steps.bin") +
           read_whole_file(folder + "/receipt_rows.bin");
  };
  const TempFolder one, many;
  for (const int batch : {16, 32}) {
    TrainOptions options = small_options();
    options.recipe.batch = batch;
    options.max_steps = batch == 16 ? 3 : 0;
    options.resume = batch == 32;
    options.out = one.path();
    run_once(options, fake_engines());
    options.out = many.path();
    options.replicas = 2;
    options.accumulate = batch / 8;
    const ProcessesOutcome outcome = run_processes(2, options, fake_engines(), *source, how());
    expect_clean(outcome);
    EXPECT_EQ(outcome.hashes[0], outcome.hashes[1]);
    EXPECT_EQ(receipt_rows(many.path()), receipt_rows(one.path())) << batch;
  }
  EXPECT_EQ(receipt_rows(many.path() + "/before_step_00000003"),
            receipt_rows(one.path() + "/before_step_00000003"));
}

TEST_P(TrainerProcesses, TrainAsOneDoes) {
  const auto eval = small_source(23, 31);
  const RunOutcome one = run_once(small_options(4), fake_engines(), 70, eval.get());
  const auto source = small_source();
  for (const auto& [processes, local] : {std::pair{2, 1}, {2, 2}, {4, 1}, {2, 4}, {8, 1}}) {
    const auto many =
        run_processes(processes, small_options(local), fake_engines(), *source, how(eval.get()));
    expect_clean(many);
    for (size_t rank = 0; rank < many.hashes.size(); ++rank) {
      EXPECT_EQ(many.hashes[rank], one.hash) << processes << " x " << local;
      const TrainResult& result = many.results[rank];
      EXPECT_EQ(result.loss, one.result.loss);
      ASSERT_TRUE(result.eval);
      EXPECT_EQ(result.eval->samples, 23);
      EXPECT_EQ(result.eval->bad, 0);
      EXPECT_EQ(result.eval->top1, one.result.eval->top1);
    }
  }
}

// Engines that queue their work have the metrics of a step some steps later. Only then the notes of
// that step are taken, while later messages have come: each must find its own.
TEST_P(TrainerProcesses, LateMetricsGiveTheSameRun) {
  const auto eval = small_source(23, 31);
  const auto source = small_source();
  const TempFolder one_folder, many_folder;
  TrainOptions options = small_options(4);
  options.checkpoint_steps = 3;
  options.out = one_folder.path();
  const RunOutcome one = run_once(options, fake_engines(), 70, eval.get());
  options.replicas = 2;
  options.out = many_folder.path();
  const auto late = [](const NetSpec& net, const EngineOptions& engine, int) {
    return make_fake_engine(net, engine, {.metrics_lag = 4});
  };
  const auto many = run_processes(2, options, late, *source, how(eval.get()));
  expect_clean(many);
  for (size_t rank = 0; rank < many.hashes.size(); ++rank) {
    EXPECT_EQ(many.hashes[rank], one.hash);
    EXPECT_EQ(many.results[rank].loss, one.result.loss);
    EXPECT_EQ(many.results[rank].eval->top1, one.result.eval->top1);
  }
  EXPECT_EQ(read_whole_file(many_folder.path() + "/receipt_rows.bin"),
            read_whole_file(one_folder.path() + "/receipt_rows.bin"));
}

TEST_P(TrainerProcesses, EveryStartIsThatOfProcessZero) {
  TrainOptions options = small_options(1);
  const auto source = small_source();
  const auto alone = run_once(options, fake_engines());
  for (const AverageKind kind : {AverageKind::ema, AverageKind::lookahead}) {
    options.recipe.average.kind = kind;
    const auto two = run_processes(2, options, fake_engines(), *source, how());
    expect_clean(two);
    EXPECT_EQ(two.hashes[0], two.hashes[1]);
  }
}

nlohmann::json json_of(const std::string& path) {
  return nlohmann::json::parse(read_whole_file(path));
}

TEST_P(TrainerProcesses, TheFilesAreThoseOfOneRun) {
  const TempFolder one_folder, two_folder;
  const auto source = small_source();
  TrainOptions options = small_options(2);
  options.out = one_folder.path();
  run_once(options, fake_engines());
  options = small_options(1);
  options.out = two_folder.path();
  const auto two = run_processes(2, options, fake_engines(), *source, how());
  expect_clean(two);
  const auto one_receipt = json_of(one_folder.path() + "/receipt.json");
  const auto two_receipt = json_of(two_folder.path() + "/receipt.json");
  EXPECT_EQ(one_receipt["epochs"], two_receipt["epochs"]);
  EXPECT_EQ(read_whole_file(one_folder.path() + "/receipt_rows.bin"),
            read_whole_file(two_folder.path() + "/receipt_rows.bin"));
  EXPECT_FALSE(fs::exists(two_folder.path() + "/receipt.rank1.json"));
  EXPECT_EQ(json_of(two_folder.path() + "/config.json")["processes"], 2);
  const auto ones = metrics_of(one_folder.path(), "step"),
             twos = metrics_of(two_folder.path(), "step");
  ASSERT_EQ(ones.size(), twos.size());
  for (size_t i = 0; i < ones.size(); ++i) EXPECT_EQ(ones[i]["loss"], twos[i]["loss"]);
  EXPECT_EQ(two.results[0].checkpoint, newest_checkpoint(two_folder.path() + "/checkpoints"));
}

TEST_P(TrainerProcesses, BadSamplesOfAllAreCountedAndListed) {
  const FailingSource source(32);
  const TempFolder folder;
  TrainOptions options = small_options(1);
  options.recipe.epochs = 1;
  options.out = folder.path();
  options.feed.max_bad = 4;
  const auto two = run_processes(2, options, fake_engines(), source, how());
  expect_clean(two);
  EXPECT_EQ(two.results[0].bad_samples, 4);
  const auto lines = [&](const std::string& name) {
    const std::string text = read_whole_file(folder.path() + "/" + name);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines("quarantine.jsonl") + lines("quarantine.rank1.jsonl"), 4);

  // Neither process has more than the budget; together they do.
  const TempFolder other;
  options.out = other.path();
  options.feed.max_bad = 3;
  const auto failed = run_processes(2, options, fake_engines(), source, how());
  EXPECT_THAT(failed.thrown[0], HasSubstr("bad samples"));
  EXPECT_THAT(failed.thrown[0], HasSubstr("budget is 3"));
  EXPECT_THAT(failed.thrown[1], HasSubstr("process 0 failed"));
}

TEST_P(TrainerProcesses, ARequestToAnyStopsAllAfterTheSameStepAndResumes) {
  const auto source = small_source();
  const auto eval = small_source(20, 31);
  const RunOutcome whole = run_once(small_options(2), fake_engines(), 70, eval.get());
  for (const int stopper : {0, 1}) {
    const TempFolder folder;
    TrainOptions options = small_options(1);
    options.out = folder.path();
    const auto stopped = run_processes(
        2, options, fake_engines(), *source,
        {.eval = eval.get(), .messages = with_messages, .stopper = stopper, .stop_step = 7});
    expect_clean(stopped);
    for (const TrainResult& result : stopped.results) {
      EXPECT_TRUE(result.interrupted);
      EXPECT_EQ(result.step, stopped.results[0].step);
    }
    EXPECT_GE(stopped.results[0].step, 8);
    EXPECT_LE(stopped.results[0].step, 9);
    options.resume = true;
    // With the same number of processes as before.
    const auto resumed = run_processes(2, options, fake_engines(), *source, how(eval.get()));
    expect_clean(resumed);
    EXPECT_EQ(resumed.hashes[1], whole.hash);
    EXPECT_EQ(resumed.results[0].eval->top1, whole.result.eval->top1);
    const auto receipt = json_of(folder.path() + "/receipt.json");
    EXPECT_EQ(receipt["next_step"], 15);
    EXPECT_EQ(receipt["epochs"][2]["complete"], true);
  }
}

TEST_P(TrainerProcesses, ResumesWithAnotherNumberOfProcesses) {
  const TempFolder whole_folder;
  TrainOptions options = small_options(2);
  options.out = whole_folder.path();
  const RunOutcome whole = run_once(options, fake_engines());
  const auto receipt = json_of(whole_folder.path() + "/receipt.json")["epochs"];
  const auto source = small_source();
  for (const auto& [before, after] : {std::pair{1, 2}, {2, 1}, {2, 4}}) {
    const TempFolder folder;
    options = small_options(1);
    options.out = folder.path();
    options.max_steps = 7;
    options.checkpoint_steps = 7;
    expect_clean(run_processes(before, options, fake_engines(), *source, how()));
    options.max_steps = 0;
    options.resume = true;
    const auto resumed = run_processes(after, options, fake_engines(), *source, how());
    expect_clean(resumed);
    EXPECT_EQ(resumed.hashes[0], whole.hash) << before << " -> " << after;
    EXPECT_EQ(json_of(folder.path() + "/receipt.json")["epochs"], receipt);
  }
}

TEST_P(TrainerProcesses, ANaNAnywhereNamesTheRowsOfAll) {
  for (const int faulty : {0, 1}) {
    const TempFolder folder;
    TrainOptions options = small_options(1);
    options.out = folder.path();
    const auto source = small_source();
    ThreadProcesses group(2);
    const auto thrown = group.run(
        [&](ProcessGroup& process) {
          TrainOptions mine = options;
          mine.processes = &process;
          FakeEngineFaults faults;
          if (process.rank() == faulty) faults.nan_at_step = 6;
          RecordingObserver observer;
          Trainer trainer(*source, nullptr, mine, observer, fake_engines(faults));
          trainer.run();
        },
        with_messages);
    EXPECT_THAT(thrown[0], HasSubstr("step 6: the loss"));
    EXPECT_THAT(thrown[0], HasSubstr("step_00000005"));
    EXPECT_NE(thrown[1], "");
    const std::string rows = read_whole_file(folder.path() + "/failed_step.txt");
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1 + 16);
  }
}

TEST_P(TrainerProcesses, AFailingProcessEndsAllAndSaysWhy) {
  for (const int faulty : {0, 1, 2}) {
    const auto source = small_source(96);
    TrainOptions options = small_options(1);
    options.recipe.batch = 12;
    ThreadProcesses group(3);
    const auto thrown = group.run(
        [&](ProcessGroup& process) {
          TrainOptions mine = options;
          mine.processes = &process;
          FakeEngineFaults faults;
          if (process.rank() == faulty) faults.throw_at_step = 3;
          RecordingObserver observer;
          Trainer trainer(*source, nullptr, mine, observer, fake_engines(faults));
          trainer.run();
        },
        with_messages);
    for (const std::string& each : thrown) EXPECT_THAT(each, HasSubstr("told to throw"));
  }
}

TEST_P(TrainerProcesses, ProcessesMustAgree) {
  const auto source = small_source();
  const auto refused = [&](const std::vector<std::string>& words, const OptionsChange& change) {
    const auto outcome = run_processes(2, small_options(1), fake_engines(), *source,
                                       {.messages = with_messages, .change = change});
    for (const std::string& word : words) EXPECT_THAT(outcome.thrown[0], HasSubstr(word));
    EXPECT_NE(outcome.thrown[1], "");
  };
  refused({"devices", "1 in process 0", "2 in process 1"},
          [](int rank, TrainOptions& options) { options.replicas = 1 + rank; });
  refused({"recipe and options", "process 1"},
          [](int rank, TrainOptions& options) { options.seed += static_cast<uint64_t>(rank); });
  refused({"batch of 16 does not divide over 6"},
          [](int, TrainOptions& options) { options.replicas = 3; });
  // Only one process fails to start.
  refused({"no such folder"}, [](int rank, TrainOptions&) {
    if (rank == 1) throw std::runtime_error("no such folder");
  });
}

}  // namespace
}  // namespace stoker
