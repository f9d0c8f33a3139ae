// Tests of an engine's states: updates, averages, freezing and values that are not finite.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "tests/train/engine_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

TEST(EngineStateTest, WhatIsWrittenIsReadBack) {
  const NetSpec net = make_net("resnet18", {64, 64}, 10);
  const auto engine = make_cpu_engine(net, engine_options(4, 4));
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

TEST(EngineStateTest, ANumberThatIsNotFiniteChangesNothing) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  const auto engine = started_engine(net, engine_options(8, 4));
  const TestBatch batch = make_batch(net, 8, 5);
  train_step(*engine, batch);
  const Trained before = state_of(*engine);

  engine->forward_backward(batch.rows());
  reduce(*engine);
  engine->reduced_gradients()[1000] = std::numeric_limits<float>::quiet_NaN();
  apply(*engine, {});
  EXPECT_FALSE(engine->step_metrics().finite);
  EXPECT_TRUE(before == state_of(*engine));

  std::vector<float> spoilt = before.parameters;  // of the last layer: the loss is NaN
  spoilt.back() = std::numeric_limits<float>::infinity();
  engine->write(StateKind::parameters, spoilt);
  train_step(*engine, batch);
  EXPECT_FALSE(engine->step_metrics().finite);
  EXPECT_EQ(spoilt, read_state(*engine, StateKind::parameters));
  EXPECT_EQ(before.statistics, read_state(*engine, StateKind::statistics));

  engine->write(StateKind::parameters, before.parameters);
  train_step(*engine, batch);
  EXPECT_TRUE(engine->step_metrics().finite);
  EXPECT_FALSE(before == state_of(*engine));
}

TEST(EngineStateTest, ABatchOfWeightZeroChangesNothing) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  const auto engine = started_engine(net, engine_options(8, 4));
  TestBatch batch = make_batch(net, 8, 5);
  batch.weights.assign(8, 0.0f);
  const Trained before = state_of(*engine);
  train_step(*engine, batch);
  EXPECT_TRUE(engine->step_metrics().finite);
  EXPECT_EQ(engine->step_metrics().weight_sum, 0);
  EXPECT_TRUE(before == state_of(*engine));
}

TEST(EngineStateTest, FrozenTensorsStayWhatTheyAre) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  const auto engine = started_engine(net, engine_options(8, 8));
  const std::vector<TensorInfo> table = parameter_table(net);
  std::vector<TensorUpdate> tensors(table.size(), {0.1f, 0.0f, false});
  tensors[0].frozen = true;
  UpdateArgs args;
  args.tensors = tensors;
  const std::vector<float> before = read_state(*engine, StateKind::parameters);
  engine->forward_backward(make_batch(net, 8, 1).rows());
  reduce(*engine);
  engine->update(args);
  const std::vector<float> after = read_state(*engine, StateKind::parameters);
  for (size_t t = 0; t < table.size(); ++t) {
    const auto begin = table[t].offset, end = begin + table[t].count;
    const bool same =
        std::equal(before.begin() + begin, before.begin() + end, after.begin() + begin);
    EXPECT_EQ(same, t == 0) << table[t].name;
  }
}

// A step with one buffer of gradients has its sum there, which a wire with error feedback may fill
// also where nothing was computed.
TEST(EngineStateTest, TheSumOfAStepIsNoGradientOfTheNext) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  std::vector<TensorUpdate> tensors(parameter_table(net).size(), {0.1f, 0.0f, false});
  for (size_t t = 0; t < 4; ++t) tensors[t].frozen = true;  // whiten.*, and what reads it
  UpdateArgs args;
  args.tensors = tensors;
  const auto engine = started_engine(net, engine_options(8, 8));
  engine->expect_frozen(tensors);
  engine->forward_backward(make_batch(net, 8, 0).rows());
  reduce(*engine);
  std::ranges::fill(engine->reduced_gradients().first(engine->gradient_floats()), 5.0f);
  engine->update(args);
  engine->forward_backward(make_batch(net, 8, 1).rows());
  ASSERT_EQ(engine->gradient_buffers().size(), 1u);
  const float* next = engine->gradient_buffers()[0];
  EXPECT_EQ(next[0], 0);
  EXPECT_EQ(std::count(next, next + engine->gradient_floats(), 5.0f), 0);  // nor in a gap
}

// Announcing frozen tensors may save work; the other tensors get the same bits.
TEST(EngineStateTest, ExpectingFrozenTensorsChangesNothingElse) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  const std::vector<TensorInfo> table = parameter_table(net);
  std::vector<TensorUpdate> tensors(table.size(), {0.1f, 0.0f, false});
  for (size_t t = 0; t < 4; ++t)
    tensors[t].frozen = true;  // whiten.*, layers.0.conv1, norm1.weight
  UpdateArgs args;
  args.tensors = tensors;
  Trained states[2];
  for (const bool told : {false, true}) {
    const auto engine = started_engine(net, engine_options(8, 4));
    for (int step = 0; step < 3; ++step) {
      if (told && step > 0) engine->expect_frozen(tensors);
      engine->forward_backward(make_batch(net, 8, step).rows());
      reduce(*engine);
      EXPECT_EQ(engine->reduced_gradients()[0] == 0, told && step > 0);
      engine->update(args);
    }
    states[told] = state_of(*engine);
    if (!told) continue;
    tensors[0].frozen = false;
    args.tensors = tensors;
    EXPECT_THROW(engine->update(args), std::logic_error);
    engine->expect_frozen(tensors);
    engine->forward_backward(make_batch(net, 8, 3).rows());
    reduce(*engine);
    EXPECT_NE(engine->reduced_gradients()[0], 0);
  }
  EXPECT_TRUE(states[0] == states[1]);
}

TEST(EngineStateTest, AverageFollowsAndPulls) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  const auto engine = started_engine(net, engine_options(8, 8));
  const std::vector<float> start = read_state(*engine, StateKind::parameters);
  engine->blend_average(0.0f, false);
  train_step(*engine, make_batch(net, 8, 1));
  const std::vector<float> moved = read_state(*engine, StateKind::parameters);
  const std::vector<float> moved_statistics = read_state(*engine, StateKind::statistics);
  engine->blend_average(0.75f, false);
  const std::vector<float> average = read_state(*engine, StateKind::average);
  for (size_t i = 0; i < start.size(); i += 97) {
    EXPECT_FLOAT_EQ(average[i], 0.75f * start[i] + 0.25f * moved[i]);
  }
  EXPECT_EQ(read_state(*engine, StateKind::parameters), moved);
  const std::vector<float> statistics = read_state(*engine, StateKind::average_statistics);
  EXPECT_FLOAT_EQ(statistics[0], 0.25f * moved_statistics[0]);
  engine->blend_average(1.0f, true);
  EXPECT_EQ(read_state(*engine, StateKind::parameters), average);
}

TEST(EngineStateTest, ForwardUsesTheWeightsItIsAskedFor) {
  const NetSpec net = make_net("resnet20", {32, 32}, 10);
  const auto engine = started_engine(net, engine_options(4, 2));
  const TestBatch batch = make_batch(net, 4, 1);
  engine->blend_average(0.0f, false);
  std::vector<float> first(40), trained(40), average(40);
  engine->forward(batch.rows(), {}, false, first);
  train_step(*engine, batch);
  engine->forward(batch.rows(), {}, false, trained);
  engine->forward(batch.rows(), {}, true, average);
  EXPECT_NE(first, trained);
  EXPECT_EQ(first, average);
  engine->forward(batch.rows(), {}, false, average);
  EXPECT_EQ(average, trained);
}

}  // namespace
}  // namespace stoker
