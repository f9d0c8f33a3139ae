// A device engine's states on the host's operations, beside what every engine does
// (engine_state_test.cc): how they move, and engines without batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/support/fake_device.h"
#include "tests/train/device_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

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
