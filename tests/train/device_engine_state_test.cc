// Tests of a device engine's states, on the host's operations: reading and writing them, freezing,
// averages and values that are not finite.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "tests/support/fake_device.h"
#include "tests/train/device_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

TEST(DeviceEngineStateTest, WhatIsWrittenIsReadBack) {
  const NetSpec net = make_net("resnet18", {33, 33}, 10, {{8, 8, 16, 16}});
  const auto engine = make_device_engine(net, engine_options(4, 4));
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

// A checkpoint reads all states, and pinning memory takes longer than copying it.
TEST(DeviceEngineStateTest, StatesGoThroughOneSmallPieceOfPinnedMemory) {
  const NetSpec net = make_net("airnet", {32, 32}, 10);
  testing::FakeDevice device({.max_delay_us = 20});
  DeviceEngine engine(net, engine_options(4, 4), {}, device, host_ops_factory());
  const int64_t allocations = device.pinned_allocations(), bytes = device.pinned_bytes();
  std::vector<float> values = read_state(engine, StateKind::parameters);
  EXPECT_LT(bytes, static_cast<int64_t>(values.size() * sizeof(float)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(noise(1, i) % 1000);
  for (const StateKind kind : {StateKind::parameters, StateKind::momenta}) {
    engine.write(kind, values);
    EXPECT_EQ(read_state(engine, kind), values) << static_cast<int>(kind);
  }
  read_state(engine, StateKind::statistics);
  EXPECT_EQ(device.pinned_allocations(), allocations);
  EXPECT_EQ(device.pinned_bytes(), bytes);
}

TEST(DeviceEngineStateTest, WeightsThatAreWrittenAreUsed) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 3);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const auto engine = started_device_engine(net, engine_options(4, 4, 1, precision));
    const Trained start = state_of(*engine);
    std::vector<float> before(40), after(40);
    engine->forward(batch.rows(), {}, false, before);
    device_step(*engine, batch);
    engine->write(StateKind::parameters, start.parameters);
    engine->write(StateKind::statistics, start.statistics);
    engine->forward(batch.rows(), {}, false, after);
    EXPECT_EQ(before, after);
    device_step(*engine, batch);
    engine->write(StateKind::parameters, start.parameters);
    engine->write(StateKind::momenta, start.momenta);
    engine->write(StateKind::statistics, start.statistics);
    device_step(*engine, batch);
    const auto fresh = started_device_engine(net, engine_options(4, 4, 1, precision));
    device_step(*fresh, batch);
    EXPECT_TRUE(state_of(*engine) == state_of(*fresh));
  }
}

TEST(DeviceEngineStateTest, ANumberThatIsNotFiniteChangesNothing) {
  const NetSpec net = small_airnet();
  const auto engine = started_device_engine(net, engine_options(4, 2));
  const TestBatch batch = make_batch(net, 4, 5);
  device_step(*engine, batch);
  const Trained before = state_of(*engine);
  engine->forward_backward(batch.rows());
  engine->stream()->synchronize();
  engine->reduced_gradients()[1000] = std::numeric_limits<float>::quiet_NaN();
  apply(*engine, {});
  EXPECT_FALSE(engine->step_metrics().finite);
  EXPECT_TRUE(before == state_of(*engine));

  std::vector<float> spoilt = before.parameters;
  spoilt.back() = std::numeric_limits<float>::infinity();
  engine->write(StateKind::parameters, spoilt);
  device_step(*engine, batch);
  EXPECT_FALSE(engine->step_metrics().finite);
  EXPECT_EQ(spoilt, read_state(*engine, StateKind::parameters));

  engine->write(StateKind::parameters, before.parameters);
  device_step(*engine, batch);
  EXPECT_TRUE(engine->step_metrics().finite);
  EXPECT_FALSE(before == state_of(*engine));
}

TEST(DeviceEngineStateTest, ALabelThatNoClassHasStopsTheStep) {
  const NetSpec net = small_airnet();
  const auto engine = started_device_engine(net, engine_options(4, 4));
  TestBatch batch = make_batch(net, 4, 5);
  const Trained before = state_of(*engine);
  for (const int label : {-1, 10, 1 << 30}) {
    batch.labels[2] = label;
    device_step(*engine, batch);
    EXPECT_FALSE(engine->step_metrics().finite);
    EXPECT_TRUE(before == state_of(*engine));
  }
}

TEST(DeviceEngineStateTest, ABatchOfWeightZeroChangesNothing) {
  const NetSpec net = small_airnet();
  const auto engine = started_device_engine(net, engine_options(4, 4));
  TestBatch batch = make_batch(net, 4, 5);
  batch.weights.assign(4, 0.0f);
  const Trained before = state_of(*engine);
  device_step(*engine, batch);
  EXPECT_TRUE(engine->step_metrics().finite);
  EXPECT_EQ(engine->step_metrics().weight_sum, 0);
  EXPECT_TRUE(before == state_of(*engine));
}

TEST(DeviceEngineStateTest, ExpectingFrozenTensorsChangesNothingElse) {
  const NetSpec net = small_airnet();
  const std::vector<TensorInfo> table = parameter_table(net);
  std::vector<TensorUpdate> tensors(table.size(), {0.1f, 0.0f, false});
  for (size_t t = 0; t < 4; ++t) tensors[t].frozen = true;
  UpdateArgs args;
  args.tensors = tensors;
  const TestBatch batch = make_batch(net, 4, 7);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    Trained states[2];
    for (const bool told : {false, true}) {
      const auto engine = started_device_engine(net, engine_options(4, 2, 1, precision));
      for (int step = 0; step < 4; ++step) {
        if (told && step > 1) engine->expect_frozen(tensors);
        engine->forward_backward(batch.rows());
        engine->stream()->synchronize();
        EXPECT_EQ(engine->reduced_gradients()[0] == 0, told && step > 1);
        engine->update(args);
      }
      states[told] = state_of(*engine);
      if (!told) continue;
      tensors[0].frozen = false;
      args.tensors = tensors;
      EXPECT_THROW(engine->update(args), std::logic_error);
      engine->expect_frozen(tensors);
      engine->forward_backward(batch.rows());
      engine->stream()->synchronize();
      EXPECT_NE(engine->reduced_gradients()[0], 0);
      tensors[0].frozen = true;
      args.tensors = tensors;
    }
    EXPECT_TRUE(states[0] == states[1]);
  }
}

// The sum of a step without parts is in the buffer of its gradients, and a wire with error feedback
// may fill it also where nothing was computed.
TEST(DeviceEngineStateTest, TheSumOfAStepIsNoGradientOfTheNext) {
  const NetSpec net = small_airnet();
  std::vector<TensorUpdate> tensors(parameter_table(net).size(), {0.1f, 0.0f, false});
  for (size_t t = 0; t < 4; ++t) tensors[t].frozen = true;
  const TestBatch batch = make_batch(net, 4, 7);
  for (const int64_t bucket : {0, 1}) {
    const auto engine = started_device_engine(net, engine_options(4, 4));
    if (bucket > 0) engine->reduce_in_buckets(bucket, [](BufferRange) {});
    engine->expect_frozen(tensors);
    for (int step = 0; step < 4; ++step) {
      engine->forward_backward(batch.rows());
      engine->stream()->synchronize();
      const std::span<float> sum = engine->reduced_gradients().first(engine->gradient_floats());
      EXPECT_EQ(std::ranges::count(sum, 5.0f), 0) << step;
      std::ranges::fill(sum, 5.0f);
    }
  }
}

TEST(DeviceEngineStateTest, AverageFollowsAndPullsAndIsEvaluated) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 1);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const auto engine = started_device_engine(net, engine_options(4, 4, 1, precision));
    const std::vector<float> start = read_state(*engine, StateKind::parameters);
    std::vector<float> before(40), averaged(40), current(40);
    engine->forward(batch.rows(), {}, false, before);
    engine->blend_average(0.0f, false);
    device_step(*engine, batch);
    engine->forward(batch.rows(), {}, false, current);
    engine->forward(batch.rows(), {}, true, averaged);
    EXPECT_EQ(averaged, before);
    EXPECT_NE(averaged, current);
    const std::vector<float> moved = read_state(*engine, StateKind::parameters);
    engine->blend_average(0.75f, true);
    const std::vector<float> average = read_state(*engine, StateKind::average);
    for (size_t i = 0; i < start.size(); i += 37) {
      EXPECT_FLOAT_EQ(average[i], 0.75f * start[i] + 0.25f * moved[i]);
    }
    EXPECT_EQ(read_state(*engine, StateKind::parameters), average);
    engine->forward(batch.rows(), {}, true, averaged);
    engine->forward(batch.rows(), {}, false, current);
    EXPECT_EQ(averaged, current);
    EXPECT_NE(averaged, before);
  }
}

TEST(DeviceEngineStateTest, AnEvaluationEngineGivesTheSameLogitsInLessMemory) {
  const NetSpec net = small_airnet();
  const auto trainer = started_device_engine(net, engine_options(4, 2));
  EngineOptions options = engine_options(4, 4);
  options.training = false;
  const auto evaluator = started_device_engine(net, options);
  const TestBatch batch = make_batch(net, 4, 1);
  std::vector<float> a(40), b(40);
  trainer->forward(batch.rows(), {true, 1, -1}, false, a);
  evaluator->forward(batch.rows(), {true, 1, -1}, false, b);
  EXPECT_EQ(a, b);
  EXPECT_LT(evaluator->planned_bytes(), trainer->planned_bytes());
  EXPECT_THROW(evaluator->forward_backward(batch.rows()), std::logic_error);
}

// A copied state counts from the next pass on, and so do the bf16 weights that are made of it.
TEST(DeviceEngineStateTest, StatesAreCopiedFromAnotherEngine) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 1), another = make_batch(net, 4, 2);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const EngineOptions options = engine_options(4, 4, 1, precision);
    const auto from = started_device_engine(net, options), to = started_device_engine(net, options);
    from->blend_average(0, false);
    device_step(*from, batch);
    device_step(*to, another);
    std::vector<float> expected(40), own(40);
    from->forward(batch.rows(), {}, false, expected);
    to->forward(batch.rows(), {}, false, own);
    EXPECT_NE(own, expected);
    for (const StateKind kind : {StateKind::parameters, StateKind::statistics, StateKind::average,
                                 StateKind::average_statistics}) {
      to->copy_state(kind, from->device_state(kind));
      EXPECT_EQ(read_state(*to, kind), read_state(*from, kind));
    }
    for (const bool averaged : {false, true}) {
      from->forward(batch.rows(), {}, averaged, expected);
      to->forward(batch.rows(), {}, averaged, own);
      EXPECT_EQ(own, expected);
    }
    EXPECT_NE(read_state(*to, StateKind::average), read_state(*to, StateKind::parameters));
    EXPECT_THROW(to->copy_state(StateKind::statistics, from->device_state(StateKind::parameters)),
                 std::invalid_argument);
  }
}

TEST(DeviceEngineStateTest, AnEngineWithoutBatchesUpdatesLikeAnotherInLessMemory) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 1);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    EngineOptions options = engine_options(4, 4, 1, precision);
    const auto trainer = started_device_engine(net, options);
    options.batches = false;
    const auto server = started_device_engine(net, options);
    EXPECT_LT(2 * server->planned_bytes(), trainer->planned_bytes());
    std::vector<TensorUpdate> tensors(parameter_table(net).size(), {0.05f, 5e-4f, false});
    UpdateArgs args;
    args.tensors = tensors;
    for (int step = 0; step < 3; ++step) {
      if (step == 2) tensors[0].frozen = true;
      trainer->expect_frozen(tensors);
      trainer->forward_backward(batch.rows());
      trainer->stream()->synchronize();
      std::ranges::copy(trainer->reduced_gradients(), server->reduced_gradients().begin());
      server->expect_frozen(tensors);
      for (Engine* const engine : {trainer.get(), server.get()}) engine->update(args);
      EXPECT_TRUE(state_of(*server) == state_of(*trainer)) << step;
      EXPECT_EQ(server->step_metrics().loss_sum, trainer->step_metrics().loss_sum);
    }
    std::vector<float> logits(40);
    EXPECT_THROW(server->forward_backward(batch.rows()), std::logic_error);
    EXPECT_THROW(server->forward(batch.rows(), {}, false, logits), std::logic_error);
    EXPECT_THROW(server->reduce_in_buckets(4000, [](BufferRange) {}), std::logic_error);
    EXPECT_NE(server->describe_memory().find("no batches"), std::string::npos);
  }
  EngineOptions options = engine_options(4, 4);
  options.batches = false;
  HostOpsState state;
  state.free_bytes = 1000;
  try {
    make_device_engine(net, options, {}, &state);
    ADD_FAILURE() << "it fits into 1000 bytes";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("to keep the weights of 'airnet' takes"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stoker
