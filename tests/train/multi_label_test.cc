// Tests of runs whose samples show any number of classes: a target instead of a label.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/measure_hooks.h"
#include "pipeline/source/target_source.h"
#include "tests/support/temp_folder.h"
#include "tests/train/run_fixture.h"
#include "train/labels.h"

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kClasses = 3;

// Drawn pictures of five kinds, each of which has two of three marks, and so no label of one.
class MarkedSource {
 public:
  explicit MarkedSource(int64_t samples, uint64_t seed = 9, TargetType type = TargetType::float32,
                        int tables = 1)
      : drawn_(small_source(samples, seed)) {
    for (SampleId id = 0; id < samples; ++id) {
      for (int k = 0; k < kClasses; ++k) {
        marks_.push_back((drawn_->label(id) + 1) >> k & 1 ? 1.0f : 0.0f);
      }
    }
    std::vector<TargetTable> all;
    for (int i = 0; i < tables; ++i) {
      all.push_back({{.name = i == 0 ? "tags" : "more", .type = type, .shape = {kClasses}},
                     std::as_bytes(std::span(marks_))});
    }
    source_ = std::make_unique<TargetSource>(*drawn_, std::move(all));
  }
  const Source& operator*() const { return *source_; }
  std::vector<float>& marks() { return marks_; }

 private:
  const std::unique_ptr<Source> drawn_;
  std::vector<float> marks_;
  std::unique_ptr<TargetSource> source_;
};

class MultiLabel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_engine_available()) GTEST_SKIP() << "built without oneDNN";
  }

  struct Outcome {
    TrainResult result;
    uint64_t hash = 0;
    std::vector<std::string> plan;
  };
  static Outcome run(const TrainOptions& options, const Source& source,
                     const Source* eval = nullptr) {
    RecordingObserver observer;
    Trainer trainer(source, eval, options, observer);
    const TrainResult result = trainer.run();
    return {result, trainer.weights_hash(), observer.plan};
  }
  static std::string refusal(const TrainOptions& options, const Source& source,
                             const Source* eval = nullptr) {
    try {
      run(options, source, eval);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(MultiLabel, LearnsAndIsEvaluatedAndSavedAsAModel) {
  const TempFolder folder;
  const MarkedSource train(160), eval(40);  // of the same pictures
  TrainOptions options = small_options(2);
  options.recipe.epochs = 8;
  options.out = folder.path();
  const Outcome outcome = run(options, *train, &*eval);
  EXPECT_THAT(outcome.plan, Contains(HasSubstr("40 for evaluation, 3 classes")));
  const auto epochs = metrics_of(folder.path(), "epoch");
  EXPECT_LT(epochs.back()["loss"], 0.8 * epochs.front()["loss"].get<double>());
  EXPECT_GT(outcome.result.eval->top1, 0.7);  // of the outputs
  EXPECT_LE(outcome.result.eval->top5, outcome.result.eval->top1);

  const LoadedModel model = load_model(folder.path());
  EXPECT_EQ(model.info.target, "tags");
  EXPECT_THAT(model.info.class_names, ElementsAre("tags[0]", "tags[1]", "tags[2]"));
  EXPECT_EQ(model.info.net().loss, LossKind::binary);
  EvalCheckpointOptions again;
  again.checkpoint = folder.path();
  again.feed.workers = kFeedWorkers;
  const EvalResult result = evaluate_checkpoint(*eval, again);
  EXPECT_NEAR(result.loss, outcome.result.eval->loss, 1e-6);
  EXPECT_EQ(result.top1, outcome.result.eval->top1);
  EXPECT_EQ(result.top5, outcome.result.eval->top5);
  // It knows nothing of labels.
  EXPECT_THROW(evaluate_checkpoint(*small_source(40, 31), again), std::runtime_error);
}

TEST_F(MultiLabel, AModelOfLabelsIsNotEvaluatedOnTargets) {
  const TempFolder folder;
  TrainOptions options = small_options();
  options.recipe.epochs = 1;
  options.out = folder.path();
  run(options, *small_source(32));
  EvalCheckpointOptions again;
  again.checkpoint = folder.path();
  EXPECT_THROW(evaluate_checkpoint(*MarkedSource(40, 31), again), std::runtime_error);
}

TEST_F(MultiLabel, ReplicasServersPartsAndResumesLeaveTheSameBits) {
  const MarkedSource train(70);
  TrainOptions options = small_options();
  options.recipe.epochs = 2;
  const uint64_t expected = run(options, *train).hash;
  options.replicas = 4;
  EXPECT_EQ(run(options, *train).hash, expected);
  options.reduce = ReduceKind::server;
  EXPECT_EQ(run(options, *train).hash, expected);
  options = small_options();
  options.recipe.epochs = 2;
  options.accumulate = 2;
  EXPECT_EQ(run(options, *train).hash, expected);
  const TempFolder folder;
  options.accumulate = 1;
  options.out = folder.path();
  options.max_steps = 3;
  run(options, *train);
  options.max_steps = 0;
  options.resume = true;
  options.replicas = 2;
  EXPECT_EQ(run(options, *train).hash, expected);
  EXPECT_THAT(refusal(options, *small_source()), HasSubstr("another list of classes"));
}

TEST_F(MultiLabel, AResidentFeedKeepsTheTargets) {
  const MarkedSource train(64);
  TrainOptions options = small_options(2);
  options.recipe.epochs = 1;
  const uint64_t real = run(options, *train).hash;
  MeasureHooks measure{.feed = FeedKind::resident};
  options.measure = &measure;
  EXPECT_EQ(run(options, *train).hash, real);
}

TEST_F(MultiLabel, RefusesWhatNoModelLearns) {
  const MarkedSource good(32), integers(32, 9, TargetType::int32),
      two(32, 9, TargetType::float32, 2);
  TrainOptions options = small_options();
  EXPECT_THAT(
      refusal(options, *integers),
      HasSubstr("the samples have a target, 'tags': int32 (3); models learn a label, or one "
                "target of a number from 0 to 1 for each class"));
  EXPECT_THAT(refusal(options, *two), HasSubstr("the samples have 2 targets"));
  EXPECT_THAT(refusal(options, *good, small_source(20, 31).get()),
              HasSubstr("have 3 classes, evaluation data"));
  options.recipe.train.set_stages("resize | flip | mix(mixup=0.2)");
  EXPECT_THAT(refusal(options, *good), HasSubstr("only labels are mixed"));
  options = small_options();
  options.recipe.epochs = 1;
  MarkedSource large(32);
  for (float& mark : large.marks()) mark *= 2;
  const std::string error = refusal(options, *large);
  EXPECT_THAT(error, HasSubstr("has 2.000000 as its target of class"));
}

}  // namespace
}  // namespace stoker
