// Tests of replicas that train independently: each is as a run of its own on its share of the
// samples, is saved and resumed exactly, and is reported.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/sample_order.h"
#include "tests/support/temp_folder.h"
#include "tests/train/processes_fixture.h"
#include "train/run/metrics.h"

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

TrainOptions independent_options(int replicas, const std::string& out = "") {
  TrainOptions options = small_options(replicas);
  options.reduce = ReduceKind::independent;
  options.out = out;
  return options;
}

EngineFactory late_engines() {
  return [](const NetSpec& net, const EngineOptions& engine, int) {
    return make_fake_engine(net, engine, {.metrics_lag = 4});
  };
}

std::string newest_of(const std::string& out, int replica) {
  return newest_checkpoint(checkpoint_folder(out, replica));
}

// Everything that a checkpoint of a replica holds, without the time that its epoch took.
std::string bytes_of(const std::string& out, int replica) {
  const std::string path = newest_of(out, replica);
  if (path.empty()) return "none";
  auto json = nlohmann::json::parse(read_whole_file(path + "/trainer.json"));
  json["epoch_so_far"].erase("seconds");
  return read_whole_file(path + "/model.safetensors") +
         read_whole_file(path + "/state.safetensors") + json.dump();
}

// The names, sizes and contents of all files of a folder.
std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    files.push_back(path + (entry.is_regular_file() ? read_whole_file(path) : ""));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Asks the run to stop when step `step` is reported; returns the step after which it did.
int64_t stop_at(int64_t step, const TrainOptions& options, const EngineFactory& engines,
                const Source* eval = nullptr) {
  const auto source = small_source();
  RecordingObserver observer;
  Trainer trainer(*source, eval, options, observer, engines);
  observer.at_step = [&](const StepReport& report) {
    if (report.step == step) trainer.request_stop();
  };
  const TrainResult result = trainer.run();
  EXPECT_TRUE(result.interrupted);
  return result.step;
}

std::string independent_refusal(const TrainOptions& options) {
  try {
    run_once(options, fake_engines());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

// The part of the shuffled order that one of several replicas sees, as an order of its own.
class ShareOrder final : public SampleOrder {
 public:
  ShareOrder(int64_t samples, int replicas, int replica, int rows)
      : SampleOrder("share", samples, samples / replicas),
        all_(shuffled_order(samples)),
        replicas_(replicas),
        replica_(replica),
        rows_(rows) {}
  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    const int64_t step = position / rows_, row = position % rows_;
    return all_->at(epoch, (step * replicas_ + replica_) * rows_ + row);
  }
  std::string describe() const override { return "share " + std::to_string(replica_); }

 private:
  const SharedOrder all_;
  const int replicas_, replica_, rows_;
};

// Returns a run of one replica, on the share of replica `replica` of a run with `options`.
TrainOptions lone_options(const TrainOptions& options, int replica, int64_t samples) {
  TrainOptions lone = options;
  lone.recipe.batch /= options.replicas;
  lone.replicas = 1;
  lone.reduce = ReduceKind::automatic;
  lone.out.clear();
  lone.order = std::make_shared<ShareOrder>(samples, options.replicas, replica, lone.recipe.batch);
  return lone;
}

void expect_lone_runs(const TrainOptions& options, const EngineFactory& engines, int64_t samples) {
  const auto eval = small_source(23, 31);
  const RunOutcome all = run_once(options, engines, samples, eval.get());
  ASSERT_EQ(all.result.replicas.size(), static_cast<size_t>(options.replicas));
  std::vector<uint64_t> hashes;
  for (int replica = 0; replica < options.replicas; ++replica) {
    SCOPED_TRACE(replica);
    const RunOutcome lone =
        run_once(lone_options(options, replica, samples), engines, samples, eval.get());
    CheckpointInfo info;
    TrainState state;
    load_checkpoint(newest_of(options.out, replica), info, state);
    hashes.push_back(state_hash(state));
    EXPECT_EQ(hashes.back(), lone.hash);
    const ReplicaFigures& figures = all.result.replicas[static_cast<size_t>(replica)];
    EXPECT_EQ(figures.loss, lone.result.loss);
    EXPECT_EQ(figures.accuracy, lone.result.accuracy);
    ASSERT_TRUE(figures.eval && lone.result.eval);
    EXPECT_EQ(figures.eval->loss, lone.result.eval->loss);
    EXPECT_EQ(figures.eval->top1, lone.result.eval->top1);
    EXPECT_EQ(figures.eval->samples, 23);
    EXPECT_EQ(figures.best_top1, info.best_top1);
    EXPECT_EQ(figures.checkpoint, newest_of(options.out, replica));
    EXPECT_EQ(info.replica, replica);
    EXPECT_EQ(info.replicas, options.replicas);
  }
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end()) << "two learned the same";
}

TEST(Independent, EachReplicaIsARunOfItsOwnOnItsShare) {
  for (const int replicas : {2, 4}) {
    for (const bool late : {false, true}) {
      const TempFolder folder;
      TrainOptions options = independent_options(replicas, folder.path());
      options.recipe.epochs = 2;
      if (late == (replicas == 2)) options.recipe.average.kind = AverageKind::lookahead;
      expect_lone_runs(options, late ? late_engines() : fake_engines(), 64);
    }
  }
}

TEST(Independent, OnTheCpuEngineToo) {
  if (!cpu_engine_available()) GTEST_SKIP() << "built without oneDNN";
  const TempFolder folder;
  TrainOptions options = independent_options(2, folder.path());
  options.recipe.epochs = 1;
  expect_lone_runs(options, {}, 32);
}

// The last batch of an epoch has six samples, all of them for the first replica.
TEST(Independent, AReplicaWithoutSamplesOfABatchKeepsItsWeights) {
  const TempFolder folder;
  TrainOptions options = independent_options(2, folder.path());
  options.checkpoint_steps = 1;
  options.max_steps = 5;
  run_once(options, fake_engines());
  for (const int replica : {0, 1}) {
    uint64_t hashes[2] = {};
    for (const int step : {4, 5}) {
      CheckpointInfo info;
      TrainState state;
      load_checkpoint(
          checkpoint_folder(folder.path(), replica) + "/step_0000000" + std::to_string(step), info,
          state);
      hashes[step - 4] = state_hash(state);
    }
    EXPECT_EQ(hashes[0] == hashes[1], replica == 1) << replica;
  }
}

TEST(Independent, ResumedAtEveryStepIsAsNeverStopped) {
  const auto eval = small_source(20, 31);
  for (const bool late : {false, true}) {
    const EngineFactory engines = late ? late_engines() : fake_engines();
    const TempFolder whole_folder;
    TrainOptions options = independent_options(2, whole_folder.path());
    options.recipe.optimizer = with_optimizer(options.recipe.optimizer, OptimizerKind::adam);
    options.recipe.average.kind = AverageKind::ema;
    options.recipe.epochs = 2;
    const RunOutcome whole = run_once(options, engines, 70, eval.get());
    // Late metrics differ at the end of an epoch and beside it.
    for (int64_t stop = late ? 4 : 1; stop <= (late ? 6 : 10); ++stop) {
      const TempFolder folder;
      options.out = folder.path();
      options.resume = false;
      stop_at(stop, options, engines, eval.get());
      options.resume = true;
      const RunOutcome resumed = run_once(options, engines, 70, eval.get());
      for (const int replica : {0, 1}) {
        EXPECT_EQ(bytes_of(folder.path(), replica), bytes_of(whole_folder.path(), replica))
            << "stopped at " << stop;
        const ReplicaFigures& figures = resumed.result.replicas[static_cast<size_t>(replica)];
        const ReplicaFigures& expected = whole.result.replicas[static_cast<size_t>(replica)];
        EXPECT_EQ(figures.eval->top1, expected.eval->top1);
        EXPECT_EQ(figures.eval->loss, expected.eval->loss);
        EXPECT_EQ(figures.checkpoint, newest_of(folder.path(), replica));
      }
      EXPECT_EQ(metrics_of(folder.path(), "step").size(), 10u);
    }
  }
}

// A run may be killed after some of its replicas were saved: all go on from the last common step,
// however few checkpoints are kept.
TEST(Independent, GoesOnFromTheStepThatAllHave) {
  const TempFolder whole_folder;
  TrainOptions options = independent_options(2, whole_folder.path());
  run_once(options, fake_engines());
  for (const bool torn : {false, true}) {
    const TempFolder folder;
    options.out = folder.path();
    options.resume = false;
    options.keep_checkpoints = 3;
    options.checkpoint_steps = 3;
    EXPECT_EQ(stop_at(7, options, fake_engines()), 9);  // saved after 3, 5, 6 and 9 steps
    for (const char* step : {"6", "9"}) {
      const std::string path =
          checkpoint_folder(folder.path(), 1) + "/step_0000000" + std::string(step);
      if (torn) {
        replace_file(path + "/model.safetensors", "half");
      } else {
        fs::remove_all(path);
      }
    }
    options.keep_checkpoints = 1;
    options.resume = true;
    options.checkpoint_steps = 0;
    EXPECT_EQ(stop_at(6, options, fake_engines()), 8);  // from step 5 on
    for (const int replica : {0, 1}) {  // and what the first replica alone had is gone
      EXPECT_THAT(newest_of(folder.path(), replica), HasSubstr("step_00000008"));
    }
    run_once(options, fake_engines());
    for (const int replica : {0, 1}) {
      EXPECT_EQ(bytes_of(folder.path(), replica), bytes_of(whole_folder.path(), replica));
    }
  }
}

TEST(Independent, RefusesOtherReplicasAndWritesNothing) {
  const TempFolder folder, plain;
  TrainOptions options = independent_options(2, folder.path());
  options.max_steps = 2;
  run_once(options, fake_engines());
  TrainOptions one_model = small_options(2);
  one_model.out = plain.path();
  one_model.max_steps = 2;
  run_once(one_model, fake_engines());

  const auto before = files_of(folder.path()), plain_before = files_of(plain.path());
  options.resume = true;
  options.replicas = 4;
  EXPECT_THAT(independent_refusal(options),
              HasSubstr(folder.path() + ": it holds the checkpoints of 2 independent replicas, "
                                        "and this run has 4 independent replicas"));
  options.replicas = 1;
  EXPECT_THAT(independent_refusal(options),
              HasSubstr("2 independent replicas, and this run has 1 independent"));
  options.replicas = 2;
  options.reduce = ReduceKind::automatic;
  EXPECT_THAT(independent_refusal(options), HasSubstr("has replicas that train one model"));
  options.reduce = ReduceKind::independent;
  options.out = plain.path();
  EXPECT_THAT(independent_refusal(options),
              HasSubstr("of replicas that train one model, and this run has 2"));
  EXPECT_EQ(files_of(folder.path()), before);
  EXPECT_EQ(files_of(plain.path()), plain_before);

  // A replica's folder alone is not a run, nor are two that changed places.
  options.reduce = ReduceKind::automatic;
  options.replicas = 1;
  options.out = folder.path() + "/replica_1";
  EXPECT_THAT(independent_refusal(options),
              HasSubstr("place among its replicas: 1 of 2 independent replicas"));
  fs::rename(folder.path() + "/replica_0", folder.path() + "/x");
  fs::rename(folder.path() + "/replica_1", folder.path() + "/replica_0");
  fs::rename(folder.path() + "/x", folder.path() + "/replica_1");
  options = independent_options(2, folder.path());
  options.resume = true;
  EXPECT_THAT(independent_refusal(options), HasSubstr("place among its replicas: 1 of 2"));
}

TEST(Independent, AReplicaIsAModelAndTheRunIsNone) {
  const TempFolder folder;
  TrainOptions options = independent_options(2, folder.path());
  run_once(options, fake_engines());
  for (const int replica : {0, 1}) {
    const LoadedModel model = load_model(folder.path() + "/replica_" + std::to_string(replica));
    EXPECT_EQ(model.file, newest_of(folder.path(), replica) + "/model.safetensors");
  }
  try {
    load_model(folder.path());
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder.path() + " is a run of 2 independent replicas"));
    EXPECT_THAT(error.what(), HasSubstr(folder.path() + "/replica_0"));
  }
}

TEST(Independent, EveryReplicaIsReportedWithMeanAndSpread) {
  const TempFolder folder;
  const TrainOptions options = independent_options(4, folder.path());
  const auto source = small_source(), eval = small_source(40, 31);
  RecordingObserver observer;
  Trainer trainer(*source, eval.get(), options, observer, fake_engines());
  const TrainResult result = trainer.run();
  EXPECT_THAT(observer.plan,
              Contains("exchange: independent, 4 replicas train a model each, on their shares of "
                       "every batch, and send nothing; each is evaluated on all samples and saved "
                       "in " +
                       folder.path() + "/replica_I"));
  EXPECT_THAT(observer.plan, Contains(HasSubstr("learning rate 0.025 (0.1 x 4 / 16)")));
  EXPECT_EQ(result.traffic, Traffic());
  const auto config = nlohmann::json::parse(read_whole_file(folder.path() + "/config.json"));
  EXPECT_EQ(config["reduce"], "independent");
  EXPECT_EQ(config["models"], 4);  // by which a comparison of runs sees that they differ
  for (const auto& [kind, bytes] : config["bytes_per_step"].items()) EXPECT_EQ(bytes, 0) << kind;

  ASSERT_EQ(observer.epochs.size(), 3u);
  const auto rows = metrics_of(folder.path(), "replica"),
             means = metrics_of(folder.path(), "epoch");
  ASSERT_EQ(rows.size(), 12u);
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    const EpochReport& report = observer.epochs[epoch];
    ASSERT_EQ(report.replicas.size(), 4u);
    double top1 = 0, squares = 0, loss = 0;
    for (size_t i = 0; i < 4; ++i) {
      const ReplicaFigures& replica = report.replicas[i];
      top1 += replica.eval->top1 / 4;
      loss += replica.eval->loss / 4;
      const nlohmann::json& row = rows[4 * epoch + i];
      EXPECT_EQ(row["replica"], i);
      EXPECT_EQ(row["step"], report.step);
      EXPECT_NEAR(row["eval_top1"].get<double>(), replica.eval->top1, 1e-8);
      EXPECT_NEAR(row["loss"].get<double>(), replica.loss, 1e-7);
      EXPECT_EQ(replica.checkpoint, checkpoint_folder(folder.path(), static_cast<int>(i)) +
                                        report.checkpoint.substr(report.checkpoint.rfind('/')));
    }
    for (const ReplicaFigures& replica : report.replicas) {
      squares += std::pow(replica.eval->top1 - top1, 2) / 3;
    }
    EXPECT_NEAR(report.eval->top1, top1, 1e-12);
    EXPECT_NEAR(report.eval->loss, loss, 1e-12);
    EXPECT_EQ(report.eval->samples, 40);
    EXPECT_NEAR(means[epoch]["eval_top1"].get<double>(), top1, 1e-8);
    EXPECT_NEAR(means[epoch]["eval_top1_deviation"].get<double>(), std::sqrt(squares), 1e-8);
  }
  EXPECT_EQ(metrics_of(folder.path(), "step")[0]["gradient_bytes_sent"], 0);
  // A run that trains one model has no such rows.
  const TempFolder plain;
  TrainOptions one_model = small_options(4);
  one_model.out = plain.path();
  run_once(one_model, fake_engines(), 70, eval.get());
  EXPECT_THAT(read_whole_file(plain.path() + "/metrics.jsonl"), Not(HasSubstr("replica")));
  EXPECT_THAT(read_whole_file(plain.path() + "/metrics.jsonl"), Not(HasSubstr("deviation")));
}

TEST(Independent, TheSpreadIsThatOfASample) {
  const double values[] = {0.5, 0.7, 0.6};
  const Spread spread = spread_of(values);
  EXPECT_NEAR(spread.mean, 0.6, 1e-15);
  EXPECT_NEAR(spread.deviation, 0.1, 1e-15);
  EXPECT_EQ(spread.lowest, 0.5);
  EXPECT_EQ(spread.highest, 0.7);
  EXPECT_EQ(spread_of({values, 1}).deviation, 0);
}

TEST(Independent, ANaNNamesItsReplicaAndItsSamples) {
  for (const int lag : {0, 3}) {
    const TempFolder folder;
    TrainOptions options = independent_options(2, folder.path());
    options.accumulate = 2;
    try {
      run_once(options, [&](const NetSpec& net, const EngineOptions& engine, int replica) {
        // Two parts are one step, which the fake counts when the last one comes.
        return make_fake_engine(net, engine,
                                {.nan_at_step = replica == 1 ? 6 : -1, .metrics_lag = lag});
      });
      FAIL();
    } catch (const TrainingFailed& error) {
      EXPECT_THAT(error.what(), HasSubstr("step 6"));
      EXPECT_THAT(error.what(), HasSubstr("a gradient of replica 1 is not finite"));
      EXPECT_THAT(error.what(), HasSubstr("its 8 samples begin with"));
      EXPECT_THAT(error.what(), HasSubstr("replica_0/checkpoints/step_00000005"));
    }
    // Which samples they are follows from the order: parts of four rows, replica by replica.
    const SharedOrder order = shuffled_order(70);
    const EpochKey epoch(options.seed, 1);
    std::string expected = "step 6\n";
    for (const int64_t position : {20, 21, 22, 23, 28, 29, 30, 31}) {
      const SampleId id = order->at(epoch, position).id;
      expected += std::to_string(id) + " " + small_source()->name(id) + "\n";
    }
    EXPECT_EQ(read_whole_file(folder.path() + "/failed_step.txt"), expected);
  }
}

TEST(Independent, RefusesAFormatOfTheWire) {
  TrainOptions options = independent_options(2);
  options.grad_wire = GradWire::bf16;
  EXPECT_THAT(independent_refusal(options),
              HasSubstr("bf16, but with reduce independent no gradients travel"));
}

// With messages, like MPI, and without, like NCCL.
class IndependentProcesses : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(With, IndependentProcesses, ::testing::Bool(), [](const auto& param) {
  return param.param ? std::string("Messages") : std::string("Gathers");
});

TEST_P(IndependentProcesses, AreAsThoseOfOneProcess) {
  const auto source = small_source(), eval = small_source(23, 31);
  const TempFolder one_folder;
  TrainOptions options = independent_options(4, one_folder.path());
  const RunOutcome one = run_once(options, fake_engines(), 70, eval.get());
  for (const auto& [processes, local] : {std::pair{2, 2}, {4, 1}}) {
    for (const bool late : {false, true}) {
      if (late && local == 1) continue;
      const TempFolder folder;
      options = independent_options(local, folder.path());
      // Stopped inside an epoch, and resumed with the same replicas, divided in another way.
      ProcessesRun how{.eval = eval.get(), .messages = GetParam(), .stopper = 0, .stop_step = 7};
      const EngineFactory engines = late ? late_engines() : fake_engines();
      const auto stopped = run_processes(processes, options, engines, *source, how);
      expect_clean(stopped);
      EXPECT_TRUE(stopped.results.back().interrupted);
      options.resume = true;
      options.replicas = processes;
      how.stopper = -1;
      const auto resumed = run_processes(local, options, engines, *source, how);
      expect_clean(resumed);
      const std::vector<TrainResult>& results = resumed.results;
      for (int replica = 0; replica < 4; ++replica) {
        EXPECT_EQ(bytes_of(folder.path(), replica), bytes_of(one_folder.path(), replica));
        const ReplicaFigures& expected = one.result.replicas[static_cast<size_t>(replica)];
        ASSERT_EQ(results[0].replicas.size(), 4u);
        EXPECT_EQ(results[0].replicas[static_cast<size_t>(replica)].eval->loss,
                  expected.eval->loss);
        EXPECT_EQ(results[0].replicas[static_cast<size_t>(replica)].loss, expected.loss);
      }
      EXPECT_EQ(results[0].eval->top1, one.result.eval->top1);
      EXPECT_EQ(results.back().eval->top1, one.result.eval->top1);
      EXPECT_EQ(metrics_of(folder.path(), "replica"), metrics_of(one_folder.path(), "replica"));
      EXPECT_EQ(read_whole_file(folder.path() + "/receipt_rows.bin"),
                read_whole_file(one_folder.path() + "/receipt_rows.bin"));
    }
  }
}

// A folder of pictures, which a cache can keep.
std::unique_ptr<Source> pictures_in(const TempFolder& folder, int count) {
  const std::string file = read_whole_file(STOKER_GOLDEN_DIR "/decode/images/gray.jpg");
  for (int i = 0; i < count; ++i) {
    folder.write(fmt::format("data/class{}/{}.jpg", i % 2, i), file);
  }
  return open_source(folder.path() + "/data", Split::all);
}

// The figures of models are sent, and what a process says of its own cache is not.
TEST_P(IndependentProcesses, HaveACacheOfDecodedPicturesEach) {
  const TempFolder folder;
  const auto source = pictures_in(folder, 20);
  ProcessesRun how{.eval = source.get(), .messages = GetParam()};
  const auto cache_of = [&](size_t rank) {
    return folder.path() + "/pictures_of_process_" + std::to_string(rank);
  };
  how.change = [&](int rank, TrainOptions& options) {
    options.feed.cache = std::make_shared<DecodedCache>(
        DecodedCacheOptions{.folder = cache_of(static_cast<size_t>(rank)), .bytes = 1 << 20});
  };
  const auto run = run_processes(2, independent_options(1), fake_engines(), *source, how);
  expect_clean(run);
  for (size_t rank = 0; rank < 2; ++rank) {
    const TrainResult& result = run.results[rank];
    ASSERT_TRUE(result.eval && result.eval->cache);
    EXPECT_THAT(result.eval->cache->folder, HasSubstr(cache_of(rank)));
    ASSERT_EQ(result.replicas.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {  // every process has the figures of all
      EXPECT_EQ(result.replicas[i].loss, run.results[0].replicas[i].loss);
      EXPECT_EQ(result.replicas[i].eval->loss, run.results[0].replicas[i].eval->loss);
    }
  }
}

TEST_P(IndependentProcesses, ANaNInAnyIsNamedByTheFirst) {
  const auto source = small_source();
  for (const int faulty : {0, 1}) {
    const TempFolder folder;
    ThreadProcesses group(2);
    const auto thrown = group.run(
        [&](ProcessGroup& process) {
          TrainOptions mine = independent_options(1, folder.path());
          mine.processes = &process;
          FakeEngineFaults faults;
          if (process.rank() == faulty) faults.nan_at_step = 6;
          RecordingObserver observer;
          Trainer trainer(*source, nullptr, mine, observer, fake_engines(faults));
          trainer.run();
        },
        GetParam());
    EXPECT_THAT(thrown[0], HasSubstr("a gradient of replica " + std::to_string(faulty)));
    EXPECT_NE(thrown[1], "");
    const std::string rows = read_whole_file(folder.path() + "/failed_step.txt");
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1 + 8);
  }
}

}  // namespace
}  // namespace stoker
