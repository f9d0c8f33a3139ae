// Tests of the Trainer with a fake engine: what it counts, saves, resumes and reports.
#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "pipeline/files/durable_file.h"
#include "pipeline/measure_hooks.h"
#include "pipeline/source/forwarding_source.h"
#include "pipeline/source/target_source.h"
#include "tests/support/fake_source.h"
#include "tests/support/one_core.h"
#include "tests/support/temp_folder.h"
#include "tests/train/run_fixture.h"
#include "train/run/batch_feed.h"
#include "train/run/options.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

TEST(Trainer, ReplicasGiveTheSameBits) {
  const RunOutcome one = run_once(small_options(1), fake_engines());
  for (const int replicas : {2, 4, 8}) {
    const RunOutcome many = run_once(small_options(replicas), fake_engines());
    EXPECT_EQ(many.hash, one.hash) << replicas;
    EXPECT_EQ(many.result.loss, one.result.loss);
    EXPECT_EQ(many.result.accuracy, one.result.accuracy);
  }
  EXPECT_EQ(one.result.step, 15);
  EXPECT_FALSE(one.result.interrupted);
}

// One replica sums parts in the order of the micro-batches. Several replicas sum their own parts
// first, so only the last bits may differ. Receipts list the same samples in the same rows.
TEST(Trainer, PartsOfABatchAreTheWholeBatch) {
  for (const LastBatch policy : {LastBatch::pad, LastBatch::drop, LastBatch::wrap}) {
    TrainOptions options = small_options();
    options.recipe.last_batch = policy;
    const TempFolder whole_folder;
    options.out = whole_folder.path();
    const RunOutcome whole = run_once(options, fake_engines());
    const auto receipt_of = [](const std::string& folder) {
      return nlohmann::json::parse(read_whole_file(folder + "/receipt.json"));
    };
    for (const int replicas : {1, 2}) {
      for (const int parts : {2, 4}) {
        const TempFolder folder;
        options.out = folder.path();
        options.replicas = replicas;
        options.accumulate = parts;
        const RunOutcome outcome = run_once(options, fake_engines());
        EXPECT_EQ(outcome.result.step, whole.result.step);
        EXPECT_NEAR(outcome.result.loss, whole.result.loss, 1e-6 * whole.result.loss);
        if (replicas == 1) {
          EXPECT_EQ(outcome.hash, whole.hash) << parts << " parts";
        }
        EXPECT_EQ(receipt_of(folder.path()).at("epochs"),
                  receipt_of(whole_folder.path()).at("epochs"));
        EXPECT_EQ(read_whole_file(folder.path() + "/receipt_steps.bin"),
                  read_whole_file(whole_folder.path() + "/receipt_steps.bin"));
        EXPECT_EQ(read_whole_file(folder.path() + "/receipt_rows.bin"),
                  read_whole_file(whole_folder.path() + "/receipt_rows.bin"));
        EXPECT_EQ(
            nlohmann::json::parse(read_whole_file(folder.path() + "/config.json")).at("accumulate"),
            parts);
      }
    }
  }
}

TEST(Trainer, OneCoreGivesOneThreadAndOneWorker) {
  TrainOptions options = small_options();
  options.threads = 0;
  options.feed.workers = -1;
  on_one_core([&] { options = complete_options(options); });
  EXPECT_EQ(options.threads, 1);
  EXPECT_EQ(options.feed.workers, 1);
}

// Memory for an average of parameters and statistics is planned in any case. A checkpoint has a
// copy of it, too.
TEST(Trainer, ExpectsAnAverageOnlyOfARecipeThatHasOne) {
  TrainOptions options = small_options();
  const int64_t without = run_once(options, fake_engines()).result.expected_bytes;
  options.recipe.average.kind = AverageKind::ema;
  const int64_t with = run_once(options, fake_engines()).result.expected_bytes;
  const ModelInfo model{options.recipe, 5, {}};
  const int64_t parameters = total_count(parameter_table(model.net()));
  EXPECT_GE(with - without, 2 * static_cast<int64_t>(sizeof(float)) * parameters);
}

TEST(Trainer, SeedsGiveOtherBits) {
  TrainOptions options = small_options();
  const uint64_t first = run_once(options, fake_engines()).hash;
  options.seed = 6;
  EXPECT_NE(run_once(options, fake_engines()).hash, first);
}

TEST(Trainer, CountsEverySampleOnceInAnEpoch) {
  const auto source = small_source(70);
  for (const LastBatch policy : {LastBatch::pad, LastBatch::drop, LastBatch::wrap}) {
    const TempFolder folder;
    TrainOptions options = small_options(2);
    options.recipe.last_batch = policy;
    options.out = folder.path();
    RecordingObserver observer;
    Trainer trainer(*source, nullptr, options, observer, fake_engines());
    trainer.run();
    CheckpointInfo info;
    TrainState state;
    load_checkpoint(newest_checkpoint(folder.path() + "/checkpoints"), info, state);
    ASSERT_EQ(observer.epochs.size(), 3u);
    EXPECT_EQ(info.epoch.weight_sum, 0);
    const int64_t steps = policy == LastBatch::drop ? 4 : 5;
    EXPECT_EQ(observer.epochs[0].step, steps);
    EXPECT_EQ(observer.steps.size(), static_cast<size_t>(3 * steps));
  }
}

TEST(Trainer, EpochsMayEndInside) {
  TrainOptions options = small_options();
  options.recipe.epochs = 1.5;  // of 5 steps: 7.5
  const auto source = small_source();
  RecordingObserver observer;
  Trainer trainer(*source, nullptr, options, observer, fake_engines());
  const TrainResult result = trainer.run();
  EXPECT_EQ(result.step, 8);
  ASSERT_EQ(observer.epochs.size(), 2u);
  EXPECT_EQ(observer.epochs[1].step, 8);
  EXPECT_DOUBLE_EQ(observer.epochs[1].epochs_done, 1.6);
}

TEST(Trainer, EvaluationCountsEverySampleOnceForAnyReplicas) {
  for (const int64_t samples : {1, 15, 16, 17, 40}) {
    const auto eval = small_source(samples, 31);
    double top1 = -1;
    for (const int replicas : {1, 2, 4}) {
      const RunOutcome run = run_once(small_options(replicas), fake_engines(), 70, eval.get());
      ASSERT_TRUE(run.result.eval);
      EXPECT_EQ(run.result.eval->samples, samples);
      EXPECT_EQ(run.result.eval->bad, 0);
      if (top1 < 0) top1 = run.result.eval->top1;
      EXPECT_EQ(run.result.eval->top1, top1) << samples << " samples, " << replicas;
      EXPECT_EQ(run.result.eval->top5, 1) << "of five classes";
    }
  }
}

// 40 positions of an epoch of 70 samples, of which three come.
TEST(Trainer, AnOrderSaysWhichSamplesAnEpochHas) {
  std::vector<double> weights(70);
  weights[3] = weights[4] = weights[60] = 1;
  uint64_t hash = 0;
  for (const int replicas : {1, 2}) {
    const TempFolder folder;
    TrainOptions options = small_options(replicas);
    options.recipe.last_batch = LastBatch::drop;
    options.order = weighted_order(weights, {.length = 40});
    options.subset = "some";
    options.data_options = {{"data", "a"}, {"data", "b"}};
    options.out = folder.path();
    const auto source = small_source();
    RecordingObserver observer;
    Trainer trainer(*source, nullptr, options, observer, fake_engines());
    EXPECT_EQ(trainer.run().step, 6);
    EXPECT_THAT(observer.plan, ::testing::Contains("order: " + options.order->describe()));
    EXPECT_THAT(observer.plan,
                ::testing::Contains("note: the last 8 samples of an epoch's order are "
                                    "left out"));
    const auto config = nlohmann::json::parse(read_whole_file(folder.path() + "/config.json"));
    EXPECT_EQ(config["data"]["order"], options.order->describe());
    EXPECT_EQ(config["data"]["subset"], "some");
    EXPECT_EQ(config["data"]["options"]["data"], (std::vector<std::string>{"a", "b"}));
    const auto receipt = nlohmann::json::parse(read_whole_file(folder.path() + "/receipt.json"));
    EXPECT_EQ(receipt["policies"]["order"], options.order->describe());
    EXPECT_EQ(receipt["policies"]["subset"], "some");
    EXPECT_EQ(receipt["epochs"][0]["rows"], 32);
    if (hash == 0) hash = trainer.weights_hash();
    EXPECT_EQ(trainer.weights_hash(), hash) << replicas;
  }
}

TEST(Trainer, EvaluationCountsAnEpochOfAnOrder) {
  const auto source = small_source(20);
  const ModelInfo model{small_options().recipe, 5, source->class_names()};
  const auto engine = make_fake_engine(model.net(), {.rows = 8, .micro_batch_size = 2});
  const auto device = make_host_device();
  Engine* const engines[] = {engine.get()};
  Device* const devices[] = {device.get()};
  EvalOptions options;
  options.augment = model.recipe.eval;
  options.feed.workers = kFeedWorkers;
  options.order = weighted_order(std::vector<double>(20, 1.0), {.length = 50});
  const EvalResult result = evaluate(*source, engines, devices, 8, options);
  EXPECT_EQ(result.samples, 50);
  EXPECT_EQ(result.bad, 0);
}

TEST(Trainer, ANaNStopsWithTheStepTheRowsAndTheLastCheckpoint) {
  for (const int replicas : {1, 2}) {
    const TempFolder folder;
    TrainOptions options = small_options(replicas);
    options.out = folder.path();
    try {
      run_once(options, fake_engines({.nan_at_step = 6}, replicas - 1));
      FAIL();
    } catch (const TrainingFailed& error) {
      EXPECT_THAT(error.what(), HasSubstr("step 6"));
      EXPECT_THAT(error.what(), HasSubstr("synthetic:"));
      EXPECT_THAT(error.what(), HasSubstr("step_00000005"));
    }
    const std::string rows = read_whole_file(folder.path() + "/failed_step.txt");
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1 + 16);
    options.resume = true;  // the checkpoint is valid
    EXPECT_EQ(run_once(options, fake_engines()).hash,
              run_once(small_options(), fake_engines()).hash);
  }
}

// Late metrics change only when a problem is noticed.
TEST(Trainer, LateMetricsGiveTheSameRun) {
  const auto eval = small_source(20, 31);
  for (const int replicas : {1, 2}) {
    for (const AverageKind average : {AverageKind::none, AverageKind::lookahead}) {
      const TempFolder on_time, late;
      TrainOptions options = small_options(replicas);
      options.recipe.average.kind = average;
      options.checkpoint_steps = 3;
      options.out = on_time.path();
      const RunOutcome expected = run_once(options, fake_engines(), 70, eval.get());
      const auto rows = metrics_of(on_time.path(), "step");
      options.out = late.path();
      const auto all_late = [](const NetSpec& net, const EngineOptions& engine, int) {
        return make_fake_engine(net, engine, {.metrics_lag = 4});
      };
      const RunOutcome outcome = run_once(options, all_late, 70, eval.get());
      EXPECT_EQ(outcome.hash, expected.hash);
      EXPECT_EQ(outcome.result.loss, expected.result.loss);
      EXPECT_EQ(outcome.result.step, 15);
      const auto late_rows = metrics_of(late.path(), "step");
      ASSERT_EQ(late_rows.size(), rows.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(late_rows[i]["step"], rows[i]["step"]);
        EXPECT_EQ(late_rows[i]["loss"], rows[i]["loss"]);
        EXPECT_EQ(late_rows[i]["learning_rate"], rows[i]["learning_rate"]);
      }
    }
  }
}

TEST(Trainer, ALateNaNStillNamesItsStepAndItsRows) {
  for (const int replicas : {1, 2}) {
    std::string rows_on_time;
    for (const int lag : {0, 1, 3, 7}) {
      const TempFolder folder;
      TrainOptions options = small_options(replicas);
      options.out = folder.path();
      options.checkpoint_steps = 5;
      try {
        run_once(options, [&](const NetSpec& net, const EngineOptions& engine, int replica) {
          return make_fake_engine(
              net, engine, {.nan_at_step = replica == replicas - 1 ? 5 : -1, .metrics_lag = lag});
        });
        FAIL();
      } catch (const TrainingFailed& error) {
        EXPECT_THAT(error.what(), HasSubstr("step 5"));
        const int late = std::min(lag, 4);  // at step 10 the end of the epoch waits for all metrics
        EXPECT_THAT(error.what(), HasSubstr(late > 0 ? "noticed " + std::to_string(late) + " steps"
                                                     : "step 5: "));
        EXPECT_THAT(error.what(), HasSubstr("step_00000005"));
      }
      const std::string rows = read_whole_file(folder.path() + "/failed_step.txt");
      if (lag == 0) rows_on_time = rows;
      EXPECT_EQ(rows, rows_on_time) << lag;
      // No state after step 5 was saved.
      CheckpointInfo info;
      TrainState state;
      load_checkpoint(newest_checkpoint(folder.path() + "/checkpoints"), info, state);
      EXPECT_EQ(info.step, 5);
    }
  }
}

TEST(Trainer, MeasuresWithoutInputAndWithoutCommunication) {
  const auto run = [](FeedKind feed, ReduceKind reduce, int slots) {
    const TempFolder folder;
    MeasureHooks measure{.feed = feed};
    TrainOptions options = small_options(2);
    options.measure = &measure;
    options.out = folder.path();
    options.reduce = reduce;
    options.slots = slots;
    const RunOutcome outcome = run_once(options, fake_engines());
    EXPECT_EQ(outcome.result.step, 15);
    const bool measured = feed != FeedKind::real || reduce == ReduceKind::none;
    EXPECT_EQ(newest_checkpoint(folder.path() + "/checkpoints").empty(), measured);
    EXPECT_EQ(metrics_of(folder.path(), "step").size(), 15u);
    return outcome.hash;
  };
  const uint64_t real = run(FeedKind::real, ReduceKind::automatic, 2);
  EXPECT_EQ(run(FeedKind::real, ReduceKind::host, 2), real);
  for (const int slots : {0, 1, 2, 3}) {
    EXPECT_NE(run(FeedKind::synthetic, ReduceKind::host, slots), real);
  }
  EXPECT_NE(run(FeedKind::real, ReduceKind::none, 2), real);
  EXPECT_THROW(run(FeedKind::real, ReduceKind::nccl, 2), std::invalid_argument);
}

// Every feed that needs the index file rejects a missing one. The training source is raw and needs
// none, so the error comes from the evaluation.
TEST(Trainer, EvaluatesWithTheSeekIndexesThatItWasGiven) {
  const TempFolder folder;
  const auto source = small_source();
  const FakeSource eval({{1, 2, 3}}, 20, 5);
  TrainOptions options = small_options();
  options.feed.seek_index = folder.path() + "/indexes.bin";
  RecordingObserver observer;
  try {
    Trainer trainer(*source, &eval, options, observer, fake_engines());
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr(options.feed.seek_index + ": no such file"));
  }
}

// The first epoch is that of the real feed; later epochs repeat it.
TEST(Trainer, AResidentFeedReplaysTheFirstEpoch) {
  for (const int slots : {0, 2}) {
    const auto run = [&](FeedKind feed, double epochs, int64_t bytes) {
      MeasureHooks measure{.feed = feed, .resident_bytes = bytes};
      TrainOptions options = small_options(2);
      options.measure = &measure;
      options.recipe.epochs = epochs;
      options.slots = slots;
      return run_once(options, fake_engines()).hash;
    };
    EXPECT_EQ(run(FeedKind::resident, 1, 0), run(FeedKind::real, 1, 0));
    const uint64_t whole = run(FeedKind::resident, 2, 0);
    EXPECT_NE(whole, run(FeedKind::real, 2, 0));
    EXPECT_EQ(whole, run(FeedKind::resident, 2, 1 << 20));
    EXPECT_NE(whole, run(FeedKind::resident, 2, 2 * (8 * 16 * 16 * 3 + 512)));  // two batches
    EXPECT_THROW(run(FeedKind::resident, 2, 1000), std::invalid_argument);
  }
}

TEST(Trainer, AResidentFeedThatDoesNotFitSaysHowMuchThereIs) {
  const auto device = make_host_device();
  try {
    const ResidentBatches batches(*device, {.rows = 1024, .height = 224, .width = 224}, 1 << 20);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("1048576 batches of 147.0 MiB take 154"));
    EXPECT_THAT(error.what(), HasSubstr("MiB on cpu:0, and "));
    EXPECT_THAT(error.what(), HasSubstr("MiB are free: "));
  }
}

TEST(Trainer, AFailingReplicaEndsAll) {
  for (int faulty = 0; faulty < 3; ++faulty) {
    TrainOptions options = small_options(4);
    try {
      run_once(options, fake_engines({.throw_at_step = 3}, faulty));
      FAIL();
    } catch (const TrainingFailed& error) {
      EXPECT_THAT(error.what(), HasSubstr("told to throw"));
      EXPECT_THAT(error.what(), HasSubstr("no checkpoint"));
    }
  }
}

TEST(Trainer, TooManyBadSamplesEndTheRun) {
  FakeSource source({{1, 2, 3}}, 64, 4);  // no image at all
  TrainOptions options = small_options();
  options.feed.max_bad = 0.1;
  RecordingObserver observer;
  Trainer trainer(source, nullptr, options, observer, fake_engines());
  EXPECT_THROW(trainer.run(), TrainingFailed);
}

TEST(Trainer, SmallDataSetsUnderEveryPolicy) {
  for (const int replicas : {1, 2, 3}) {
    for (int64_t samples = 1; samples <= 2 * replicas + 1; ++samples) {
      for (const LastBatch policy : {LastBatch::pad, LastBatch::drop, LastBatch::wrap}) {
        TrainOptions options = small_options(replicas);
        options.recipe.batch = 2 * replicas;
        options.recipe.last_batch = policy;
        const auto run = [&] { return run_once(options, fake_engines(), samples); };
        if (policy == LastBatch::drop && samples < 2 * replicas) {
          EXPECT_THROW(run(), std::invalid_argument);
        } else {
          EXPECT_TRUE(std::isfinite(run().result.loss)) << samples << " of " << replicas;
        }
      }
    }
  }
}

// A run's start is a screen; what it does not use, and what few need, is not on it.
TEST(Trainer, StartsWithOneScreen) {
  const auto plan_of = [](int replicas, int64_t samples) {
    TrainOptions options = small_options(replicas);
    options.recipe.last_batch = LastBatch::drop;
    const auto source = small_source(samples);
    RecordingObserver observer;
    return Trainer(*source, nullptr, options, observer, fake_engines()).plan();
  };
  const auto lines_of = [](const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  };
  const RunPlan one = plan_of(1, 330);  // of which 10 do not fill a batch of 16
  for (const char* start : {"model: ", "data: ", "devices: ", "memory: "}) {
    EXPECT_THAT(one.lines, ::testing::Contains(::testing::StartsWith(start)));
  }
  EXPECT_LE(one.lines.size(), 8u) << lines_of(one.lines);
  for (const char* text : {"exchange: ", "memory, feed", "label smoothing", "left out"}) {
    EXPECT_THAT(lines_of(one.lines), Not(HasSubstr(text)));
    EXPECT_THAT(lines_of(one.details), HasSubstr(text));
  }
  EXPECT_THAT(lines_of(one.all()), Not(HasSubstr("data parallelism hardly pays")));
  EXPECT_EQ(one.all().size(), one.lines.size() + one.details.size());

  const RunPlan two = plan_of(2, 30);
  for (const char* text : {"exchange: ", "data parallelism hardly pays",
                           "note: the last 14 samples of an epoch's order are left out"}) {
    EXPECT_THAT(lines_of(two.lines), HasSubstr(text));
  }
}

TEST(Trainer, ReportsWhatItDoes) {
  const TempFolder folder;
  const auto source = small_source(), eval = small_source(20, 31);
  TrainOptions options = small_options(2);
  options.out = folder.path();
  options.recipe.average.kind = AverageKind::ema;
  options.feed.decode.pixels = PixelPolicy::exact_pillow12;
  options.version = "9.8.7";
  RecordingObserver observer;
  Trainer trainer(*source, eval.get(), options, observer, fake_engines());
  const TrainResult result = trainer.run();
  EXPECT_EQ(observer.plan, trainer.plan().all());
  std::string plan;
  for (const std::string& line : observer.plan) plan += line + "\n";
  EXPECT_THAT(plan, HasSubstr("data parallelism hardly pays"));
  EXPECT_THAT(plan, HasSubstr("70 training samples, 20 for evaluation, 5 classes"));
  EXPECT_THAT(plan, HasSubstr("2 x 8 samples, 4 micro-batches"));
  ASSERT_EQ(observer.steps.size(), 15u);
  ASSERT_EQ(observer.epochs.size(), 3u);
  double loss = 0;
  for (const StepReport& step : observer.steps) {
    EXPECT_GT(step.images_per_second, 0);
    EXPECT_GE(step.feed_wait_share, 0);
    EXPECT_LE(step.feed_wait_share, 1);
    EXPECT_EQ(step.total_steps, 15);
    if (step.epoch == 0) loss += step.loss * (step.step_in_epoch == 5 ? 6 : 16) / 70;
  }
  EXPECT_EQ(observer.steps.back().eta_seconds, 0);
  EXPECT_NEAR(observer.epochs[0].loss, loss, 1e-9);
  EXPECT_EQ(result.checkpoint, observer.epochs[2].checkpoint);
  EXPECT_GE(result.best_top1, result.eval->top1);
  const auto config = nlohmann::json::parse(read_whole_file(folder.path() + "/config.json"));
  EXPECT_EQ(config["version"], "9.8.7");
  EXPECT_EQ(config["devices"], 2);
  EXPECT_EQ(config["pixels"], "exact-pillow12");
  EXPECT_EQ(config["eval_pixels"], "exact");
  const auto receipt = nlohmann::json::parse(read_whole_file(result.receipt));
  EXPECT_EQ(receipt["policies"]["pixels"], "exact-pillow12");
  EXPECT_EQ(metrics_of(folder.path(), "epoch")[2]["eval_top1"], observer.epochs[2].eval->top1);
}

TEST(Trainer, TheSavedModelIsTheEvaluatedOne) {
  const TempFolder folder;
  TrainOptions options = small_options();
  options.out = folder.path();
  options.recipe.average.kind = AverageKind::ema;
  options.recipe.average.decay = 0.5;
  const auto source = small_source();
  RecordingObserver observer;
  std::unique_ptr<Engine> engine;
  Trainer trainer(*source, nullptr, options, observer, fake_engines());
  const TrainResult result = trainer.run();
  CheckpointInfo info;
  TrainState state;
  load_checkpoint(result.checkpoint, info, state);
  const LoadedModel model = load_model(result.checkpoint);
  EXPECT_EQ(model.parameters, state.average);
  EXPECT_EQ(model.statistics, state.average_statistics);
  EXPECT_NE(model.parameters, state.parameters);
  EXPECT_NE(model.statistics, state.statistics);
}

TEST(Trainer, LimitsTakeAFewSamples) {
  TrainOptions options = small_options();
  options.limit_train = 33;
  options.limit_eval = 7;
  const auto source = small_source(70), eval = small_source(20, 31);
  RecordingObserver observer;
  Trainer trainer(*source, eval.get(), options, observer, fake_engines());
  const TrainResult result = trainer.run();
  EXPECT_EQ(result.step, 9);
  EXPECT_EQ(result.eval->samples, 7);
}

TEST(Trainer, RefusesWhatCannotWorkWithTheNumbers) {
  const auto refused = [](const std::string& why, auto change) {
    TrainOptions options = small_options();
    change(options);
    try {
      run_once(options, fake_engines());
      ADD_FAILURE() << why;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  refused("batch of 16 does not divide over 3", [](TrainOptions& o) { o.replicas = 3; });
  refused("devices: 0", [](TrainOptions& o) { o.replicas = 0; });
  refused("accumulate: 0", [](TrainOptions& o) { o.accumulate = 0; });
  refused("batch of 16 does not divide over 2 devices in 3 parts", [](TrainOptions& o) {
    o.replicas = 2;
    o.accumulate = 3;
  });
  refused(
      "do not divide into micro-batches of 8 samples for batch norm (`micro_batch_size`), only of "
      "1",
      [](TrainOptions& o) {
        o.recipe.batch = 34;
        o.replicas = 2;
        o.recipe.micro_batch_size = 8;
      });
  refused("grad_wire is bf16", [](TrainOptions& o) { o.grad_wire = GradWire::bf16; });
  refused("a global batch of 72 samples is more than the 70 samples", [](TrainOptions& o) {
    o.recipe.batch = 72;
    o.recipe.last_batch = LastBatch::drop;
  });
  refused("learning_rate is inf",
          [](TrainOptions& o) { o.recipe.optimizer.learning_rate = HUGE_VAL; });
  refused("momentum", [](TrainOptions& o) { o.recipe.optimizer.momentum = 2; });
  refused("keep_checkpoints", [](TrainOptions& o) { o.keep_checkpoints = 0; });
  const auto source = small_source();
  const auto other = make_synthetic_source(10, {16, 16}, 4, 1);
  RecordingObserver observer;
  EXPECT_THROW(Trainer(*source, other.get(), small_options(), observer, fake_engines()),
               std::invalid_argument);
}

class BadLabelSource final : public ForwardingSource {
 public:
  explicit BadLabelSource(const Source& source) : ForwardingSource(source) {}
  int label(SampleId id) const override { return id == 17 ? 5 : source_.label(id); }
};

// The check is independent of the engine, because a device engine could not name the sample.
TEST(Trainer, ABadLabelIsNamedBeforeAnythingRuns) {
  const auto source = small_source();
  const BadLabelSource bad(*source);
  const auto good = small_source();
  RecordingObserver observer;
  for (const bool of_training : {true, false}) {
    const Source& train = of_training ? static_cast<const Source&>(bad) : *good;
    const Source* eval = of_training ? nullptr : &bad;
    try {
      const Trainer trainer(train, eval, small_options(), observer, fake_engines());
      ADD_FAILURE() << of_training;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("sample 17 '" + bad.name(17) + "' has label 5"));
      EXPECT_THAT(error.what(), HasSubstr("has 5 classes"));
    }
  }
}

TEST(Trainer, ATargetThatIsNoVectorIsRefused) {
  const auto source = small_source();
  const std::vector<float> ages(static_cast<size_t>(source->size()));
  const TargetSource with_ages(
      *source, {{.column = {.name = "age"}, .values = std::as_bytes(std::span(ages))}});
  RecordingObserver observer;
  try {
    Trainer(with_ages, nullptr, small_options(), observer, fake_engines());
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("the samples have a target, 'age': float32 (); models learn a label"));
  }
}

TEST(Trainer, ABatchBelowTheRecipesMicroBatchIsReported) {
  TrainOptions options = small_options(2);
  options.recipe.micro_batch_size = 16;
  const auto source = small_source();
  RecordingObserver observer;
  Trainer trainer(*source, nullptr, options, observer, fake_engines());
  std::string plan;
  for (const std::string& line : trainer.plan().all()) plan += line + "\n";
  EXPECT_THAT(plan, HasSubstr("micro-batches of 8 samples, not of the recipe's 16"));
}

TEST(Trainer, TakesTheLargestBatchThatFitsAndSaysWhy) {
  for (const int replicas : {1, 2}) {
    TrainOptions options = small_options(replicas);
    options.batch_auto = true;
    const auto source = small_source(70);
    RecordingObserver observer;
    Trainer trainer(*source, nullptr, options, observer, fake_engines());
    const int64_t batch = replicas * (70 / replicas / 2 * 2);  // whole micro-batches
    EXPECT_EQ(trainer.run().total_steps, 3 * ((70 + batch - 1) / batch));
    std::string plan;
    for (const std::string& line : trainer.plan().all()) plan += line + "\n";
    EXPECT_THAT(plan, HasSubstr("batch " + std::to_string(batch) + ", chosen: "));
    EXPECT_THAT(plan, HasSubstr("because of the 70 training samples"));
  }
}

TEST(Trainer, RunsOnce) {
  const auto source = small_source();
  RecordingObserver observer;
  Trainer trainer(*source, nullptr, small_options(), observer, fake_engines());
  trainer.run();
  EXPECT_THROW(trainer.run(), std::logic_error);
}

}  // namespace
}  // namespace stoker
