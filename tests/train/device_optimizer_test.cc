// Optimizers of a device engine, on plain loops, on the emulated kernels, or on a GPU: servers,
// copies in bf16, and what optimizer_test.cc has no other engine for.
#include <gtest/gtest.h>

#include "tests/train/device_fixture.h"
#include "tests/train/optimizer_fixture.h"

namespace stoker {
namespace {

class DeviceOptimizerTest : public OnTestedEngine {};

// A tensor of several chunks, whose squares are added up in two stages.
TEST_F(DeviceOptimizerTest, LongTensorsAreThePlainLoops) {
  const NetSpec net = make_net("airnet", {32, 32}, 10, {{16, 32, 32}});
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    const EngineOptions options = engine_options_for(optimizer, 4, 2);
    const auto run = [&](const std::unique_ptr<Engine>& engine, const auto& gradients) {
      engine->write(StateKind::parameters, initial_parameters(net, {1}));
      train_with(*engine, optimizer, 4, gradients, {0});
      return state_of(*engine);
    };
    const auto on_host = [](Engine& engine, const TestBatch& batch) {
      engine.forward_backward(batch.rows());
      engine.stream()->synchronize();
    };
    const Trained first = run(make_device_engine(net, options), run_pass);
    const Trained loops = run(make_loop_engine(net, options), on_host);
    EXPECT_TRUE(first == run(make_device_engine(net, options), run_pass)) << to_string(kind);
    EXPECT_LT(relative_distance(first.parameters, loops.parameters), 2e-5) << to_string(kind);
    EXPECT_LT(relative_distance(first.momenta, loops.momenta), 1e-3) << to_string(kind);
  }
}

// A replica that pulls its weights computes what a trainer with these weights does.
TEST_F(DeviceOptimizerTest, AServerUpdatesForReplicas) {
  const NetSpec net = tiny_net();
  const TestBatch batch = make_batch(net, 6, 9);
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    const EngineOptions options = engine_options_for(optimizer, 6, 6, 1, Precision::bf16);
    const auto trained = started_device_engine(net, options),
               replica = started_device_engine(net, options),
               server = started_device_engine(net, server_options(options));
    const auto pull = [&] {
      server->stream()->synchronize();
      for (const StateKind state : {StateKind::parameters, StateKind::statistics}) {
        replica->copy_state(state, server->device_state(state));
      }
    };
    train_with(*trained, optimizer, 6, run_pass);
    train_with(*server, optimizer, 6, [&](Engine& updated, const TestBatch& each) {
      pull();
      run_pass(*replica, each);
      const std::span<float> sum = updated.reduced_gradients();
      updated.stream()->copy(sum.data(), replica->reduced_gradients().data(), sum.size_bytes(),
                             CopyKind::device_to_device);
      updated.stream()->synchronize();
    });
    pull();
    EXPECT_NE(state_of(*server).parameters, initial_parameters(net, {1}));
    EXPECT_TRUE(state_of(*server) == state_of(*trained)) << to_string(kind);
    std::vector<float> own(60), expected(60);
    trained->forward(placed(*trained, batch), {}, false, expected);
    replica->forward(placed(*replica, batch), {}, false, own);
    EXPECT_EQ(own, expected) << to_string(kind);
  }
}

// The weights that the convolutions read are written by the update, too.
TEST_F(DeviceOptimizerTest, CopiesInBf16FollowTheWeights) {
  const NetSpec net = tiny_net();
  const TestBatch batch = make_batch(net, 6, 9);
  for (const OptimizerKind kind : kOptimizerKinds) {
    OptimizerSpec optimizer = clipping(kind);
    optimizer.learning_rate = 0.1;
    const EngineOptions options = engine_options_for(optimizer, 6, 6, 1, Precision::bf16);
    const auto trained = started_device_engine(net, options),
               fresh = make_device_engine(net, options);
    train_with(*trained, optimizer, 6, run_pass);
    for (const StateKind state : {StateKind::parameters, StateKind::statistics}) {
      fresh->write(state, read_state(*trained, state));
    }
    std::vector<float> own(60), expected(60);
    trained->forward(placed(*trained, batch), {}, false, own);
    fresh->forward(placed(*fresh, batch), {}, false, expected);
    EXPECT_EQ(own, expected) << to_string(kind);
  }
}

TEST_F(DeviceOptimizerTest, ALabelThatNoClassHasChangesNothing) {
  const NetSpec net = tiny_net();
  const TestBatch batch = make_batch(net, 6, 9);
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    const auto engine = started_device_engine(net, engine_options_for(optimizer, 6, 6));
    train_with(*engine, optimizer, 6, run_pass);
    const Trained before = state_of(*engine);
    TestBatch wrong = batch;
    wrong.labels[0] = net.classes;
    run_pass(*engine, wrong);
    update_once(*engine, optimizer);
    EXPECT_FALSE(engine->step_metrics().finite);
    EXPECT_TRUE(before == state_of(*engine)) << to_string(kind);
  }
}

}  // namespace
}  // namespace stoker
