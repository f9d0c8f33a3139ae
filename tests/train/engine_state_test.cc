// The contract of every engine's states: they are written and read, updated, frozen and averaged,
// and values that are not finite change nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "tests/train/tested_engine.h"

namespace stoker {
namespace {

class EngineStateTest : public OnTestedEngine {
 protected:
  static constexpr int kRows = 8;
  const NetSpec net_ = tested_engine().small_net;
  const std::vector<TensorInfo> table_ = parameter_table(net_);

  std::unique_ptr<Engine> started(int micro_batch_size,
                                  Precision precision = Precision::fp32) const {
    return make_started_engine(net_, engine_options(kRows, micro_batch_size, 1, precision));
  }
  // An update in which the first tensors are frozen. Of four: whiten.*, layers.0.conv1 and
  // norm1.weight, and all that reads the gradient of the pixels.
  std::vector<TensorUpdate> freezing(size_t tensors) const {
    std::vector<TensorUpdate> update(table_.size(), {0.1f, 0.0f, false});
    for (size_t t = 0; t < tensors; ++t) update[t].frozen = true;
    return update;
  }
  static void update(Engine& engine, const std::vector<TensorUpdate>& tensors) {
    UpdateArgs args;
    args.tensors = tensors;
    engine.update(args);
  }
  std::vector<float> logits(Engine& engine, const TestBatch& batch, bool averaged = false) const {
    std::vector<float> logits(batch.labels.size() * static_cast<size_t>(engine.net().classes));
    engine.forward(placed(engine, batch), {}, averaged, logits);
    return logits;
  }
};

TEST_F(EngineStateTest, WhatIsWrittenIsReadBack) {
  for (const NetSpec& net :
       {make_net("resnet18", {64, 64}, 10), make_net("resnet18", {33, 33}, 10, {{8, 8, 16, 16}})}) {
    const auto engine = make_engine(net, engine_options(4, 4));
    for (const StateKind kind : {StateKind::parameters, StateKind::momenta, StateKind::average,
                                 StateKind::statistics, StateKind::average_statistics}) {
      std::vector<float> values = read_state(*engine, kind);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(noise(static_cast<uint32_t>(kind), i) % 1000);
      }
      engine->write(kind, values);
      EXPECT_EQ(read_state(*engine, kind), values) << static_cast<int>(kind);
    }
  }
}

TEST_F(EngineStateTest, WeightsThatAreWrittenAreUsed) {
  const TestBatch batch = make_batch(net_, kRows, 3);
  for (const Precision precision : tested_engine().precisions) {
    const auto engine = started(kRows, precision);
    const Trained start = state_of(*engine);
    const std::vector<float> before = logits(*engine, batch);
    queue_step(*engine, batch);
    engine->write(StateKind::parameters, start.parameters);
    engine->write(StateKind::statistics, start.statistics);
    EXPECT_EQ(before, logits(*engine, batch));
    queue_step(*engine, batch);
    engine->write(StateKind::parameters, start.parameters);
    engine->write(StateKind::momenta, start.momenta);
    engine->write(StateKind::statistics, start.statistics);
    queue_step(*engine, batch);
    const auto fresh = started(kRows, precision);
    queue_step(*fresh, batch);
    EXPECT_TRUE(state_of(*engine) == state_of(*fresh));
  }
}

TEST_F(EngineStateTest, ANumberThatIsNotFiniteChangesNothing) {
  const auto engine = started(kRows / 2);
  const TestBatch batch = make_batch(net_, kRows, 5);
  queue_step(*engine, batch);
  const Trained before = state_of(*engine);

  run_pass(*engine, batch);
  edit_sum(*engine,
           [](std::span<float> sum) { sum[1000] = std::numeric_limits<float>::quiet_NaN(); });
  apply(*engine, {});
  EXPECT_FALSE(engine->step_metrics().finite);
  EXPECT_TRUE(before == state_of(*engine));

  std::vector<float> spoilt = before.parameters;  // of the last layer: the loss is NaN
  spoilt.back() = std::numeric_limits<float>::infinity();
  engine->write(StateKind::parameters, spoilt);
  queue_step(*engine, batch);
  EXPECT_FALSE(engine->step_metrics().finite);
  EXPECT_EQ(spoilt, read_state(*engine, StateKind::parameters));
  EXPECT_EQ(before.statistics, read_state(*engine, StateKind::statistics));

  engine->write(StateKind::parameters, before.parameters);
  queue_step(*engine, batch);
  EXPECT_TRUE(engine->step_metrics().finite);
  EXPECT_FALSE(before == state_of(*engine));
}

TEST_F(EngineStateTest, ABatchOfWeightZeroChangesNothing) {
  for (const int micro_batch_size : {kRows, kRows / 2}) {
    const auto engine = started(micro_batch_size);
    TestBatch batch = make_batch(net_, kRows, 5);
    batch.weights.assign(kRows, 0.0f);
    const Trained before = state_of(*engine);
    queue_step(*engine, batch);
    EXPECT_TRUE(engine->step_metrics().finite);
    EXPECT_EQ(engine->step_metrics().weight_sum, 0);
    EXPECT_TRUE(before == state_of(*engine));
  }
}

TEST_F(EngineStateTest, FrozenTensorsStayWhatTheyAre) {
  const auto engine = started(kRows);
  const std::vector<float> before = read_state(*engine, StateKind::parameters);
  run_pass(*engine, make_batch(net_, kRows, 1));
  update(*engine, freezing(1));
  const std::vector<float> after = read_state(*engine, StateKind::parameters);
  for (size_t t = 0; t < table_.size(); ++t) {
    const auto begin = table_[t].offset, end = begin + table_[t].count;
    const bool same =
        std::equal(before.begin() + begin, before.begin() + end, after.begin() + begin);
    EXPECT_EQ(same, t == 0) << table_[t].name;
  }
}

// A step with one buffer of gradients has its sum there, which a wire with error feedback may fill
// also where nothing was computed.
TEST_F(EngineStateTest, TheSumOfAStepIsNoGradientOfTheNext) {
  const std::vector<TensorUpdate> tensors = freezing(4);
  for (const int64_t bucket : {0, 1}) {
    for (const bool updates : {true, false}) {
      const auto engine = started(kRows);
      if (bucket > 0 && !engine->reduce_in_buckets(bucket, [](BufferRange) {})) continue;
      engine->expect_frozen(tensors);
      for (uint32_t step = 0; step < 4; ++step) {
        const TestBatch batch = make_batch(net_, kRows, step);
        engine->forward_backward(placed(*engine, batch));
        if (engine->stream()) engine->stream()->synchronize();
        ASSERT_EQ(engine->gradient_buffers().size(), 1u);
        if (!engine->stream()) {  // its buffer and the sum are in host memory, and may be two
          EXPECT_EQ(engine->gradient_buffers()[0][0], 0);
          reduce(*engine);
        }
        edit_sum(*engine, [&](std::span<float> sum) {
          sum = sum.first(static_cast<size_t>(engine->gradient_floats()));
          EXPECT_EQ(sum[0], 0);
          EXPECT_EQ(std::ranges::count(sum, 5.0f), 0) << step;  // nor in a gap
          std::ranges::fill(sum, 5.0f);
        });
        if (updates) update(*engine, tensors);
      }
    }
  }
}

// Announcing frozen tensors may save work; the other tensors get the same bits.
TEST_F(EngineStateTest, ExpectingFrozenTensorsChangesNothingElse) {
  for (const Precision precision : tested_engine().precisions) {
    for (const int first_told : {1, 2}) {
      Trained states[2];
      for (const bool told : {false, true}) {
        std::vector<TensorUpdate> tensors = freezing(4);
        const auto engine = started(kRows / 2, precision);
        for (int step = 0; step < 4; ++step) {
          const bool is_told = told && step >= first_told;
          if (is_told) engine->expect_frozen(tensors);
          run_pass(*engine, make_batch(net_, kRows, static_cast<uint32_t>(step)));
          EXPECT_EQ(first_of_sum(*engine) == 0, is_told);
          update(*engine, tensors);
        }
        states[told] = state_of(*engine);
        if (!told) continue;
        tensors[0].frozen = false;
        EXPECT_THROW(update(*engine, tensors), std::logic_error);
        engine->expect_frozen(tensors);
        run_pass(*engine, make_batch(net_, kRows, 3));
        EXPECT_NE(first_of_sum(*engine), 0);
      }
      EXPECT_TRUE(states[0] == states[1]);
    }
  }
}

TEST_F(EngineStateTest, AverageFollowsAndPullsAndIsEvaluated) {
  const TestBatch batch = make_batch(net_, kRows, 1);
  for (const Precision precision : tested_engine().precisions) {
    const auto engine = started(kRows, precision);
    const std::vector<float> start = read_state(*engine, StateKind::parameters);
    const std::vector<float> before = logits(*engine, batch);
    engine->blend_average(0.0f, false);
    queue_step(*engine, batch);
    EXPECT_EQ(logits(*engine, batch, true), before);
    EXPECT_NE(logits(*engine, batch), before);
    const std::vector<float> moved = read_state(*engine, StateKind::parameters);
    const std::vector<float> moved_statistics = read_state(*engine, StateKind::statistics);
    engine->blend_average(0.75f, false);
    const std::vector<float> average = read_state(*engine, StateKind::average);
    for (size_t i = 0; i < start.size(); i += 37) {
      EXPECT_FLOAT_EQ(average[i], 0.75f * start[i] + 0.25f * moved[i]);
    }
    EXPECT_EQ(read_state(*engine, StateKind::parameters), moved);
    EXPECT_FLOAT_EQ(read_state(*engine, StateKind::average_statistics)[0],
                    0.25f * moved_statistics[0]);
    engine->blend_average(1.0f, true);
    EXPECT_EQ(read_state(*engine, StateKind::parameters), average);
    const std::vector<float> averaged = logits(*engine, batch, true);
    EXPECT_EQ(averaged, logits(*engine, batch));
    EXPECT_NE(averaged, before);

    queue_step(*engine, batch);
    const std::vector<float> again = read_state(*engine, StateKind::parameters);
    engine->blend_average(0.75f, true);
    const std::vector<float> pulled = read_state(*engine, StateKind::average);
    for (size_t i = 0; i < start.size(); i += 37) {
      EXPECT_FLOAT_EQ(pulled[i], 0.75f * average[i] + 0.25f * again[i]);
    }
    EXPECT_EQ(read_state(*engine, StateKind::parameters), pulled);
  }
}

TEST_F(EngineStateTest, ForwardUsesTheWeightsItIsAskedFor) {
  const NetSpec net = make_net("resnet20", {32, 32}, 10);
  const auto engine = make_started_engine(net, engine_options(4, 2));
  const TestBatch batch = make_batch(net, 4, 1);
  engine->blend_average(0.0f, false);
  const std::vector<float> first = logits(*engine, batch);
  queue_step(*engine, batch);
  const std::vector<float> trained = logits(*engine, batch);
  EXPECT_NE(first, trained);
  EXPECT_EQ(first, logits(*engine, batch, true));
  EXPECT_EQ(logits(*engine, batch), trained);
}

TEST_F(EngineStateTest, AnEvaluationEngineGivesTheSameLogitsInLessMemory) {
  for (const NetSpec& net : {net_, make_net("resnet18", {64, 64}, 10)}) {
    const auto trainer = make_started_engine(net, engine_options(4, 2));
    EngineOptions options = engine_options(4, 4);
    options.training = false;
    const auto evaluator = make_started_engine(net, options);
    const TestBatch batch = make_batch(net, 4, 1);
    for (const View& view : {View{}, View{true, 1, -1}}) {
      std::vector<float> a(40), b(40);
      trainer->forward(placed(*trainer, batch), view, false, a);
      evaluator->forward(placed(*evaluator, batch), view, false, b);
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tested_engine().same_logits);
    }
    EXPECT_LT(evaluator->planned_bytes(), trainer->planned_bytes());
    EXPECT_THROW(evaluator->forward_backward(placed(*evaluator, batch)), std::logic_error);
  }
}

}  // namespace
}  // namespace stoker
