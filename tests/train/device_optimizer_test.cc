// Tests of a device engine's optimizers, on plain loops, on the emulated kernels, or on a GPU.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/train/device_fixture.h"
#include "tests/train/optimizer_fixture.h"

namespace stoker {
namespace {

class DeviceOptimizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!device_problem().empty()) GTEST_SKIP() << device_problem();
  }
};

void device_gradients(Engine& engine, const TestBatch& batch) {
  engine.forward_backward(placed(engine, batch));
  engine.stream()->synchronize();  // the batch may end before the work does
}

TEST_F(DeviceOptimizerTest, FourStepsArePyTorchs) {
  const auto make = [](const NetSpec& net, const EngineOptions& options) {
    return make_device_engine(net, options);
  };
  compare_optimizers_with_pytorch(make, device_gradients);
}

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
    const Trained first = run(make_device_engine(net, options), device_gradients);
    const Trained loops = run(make_loop_engine(net, options), on_host);
    EXPECT_TRUE(first == run(make_device_engine(net, options), device_gradients))
        << to_string(kind);
    EXPECT_LT(relative_distance(first.parameters, loops.parameters), 2e-5) << to_string(kind);
    EXPECT_LT(relative_distance(first.momenta, loops.momenta), 1e-3) << to_string(kind);
  }
}

TEST_F(DeviceOptimizerTest, MemoryIsTakenOnlyWhereItIsNeeded) {
  const NetSpec net = tiny_net();
  const auto make = [&](const OptimizerSpec& optimizer) {
    return make_device_engine(net, engine_options_for(optimizer, 6, 6));
  };
  const auto sgd = make({}), adam = make(with_optimizer({}, OptimizerKind::adam));
  const auto floats = static_cast<int64_t>(sizeof(float)) * sgd->gradient_floats();
  EXPECT_EQ(adam->planned_bytes() - sgd->planned_bytes(), (floats + 255) / 256 * 256);
  EXPECT_THROW(read_state(*sgd, StateKind::second_moments), std::logic_error);
  for (const OptimizerSpec& optimizer :
       {clipping(OptimizerKind::sgd), with_optimizer({}, OptimizerKind::lars)}) {
    const int64_t more = make(optimizer)->planned_bytes() - sgd->planned_bytes();
    EXPECT_GT(more, 0);
    EXPECT_LE(more, 1024);
  }
  std::vector<float> values = read_state(*adam, StateKind::second_moments);
  EXPECT_EQ(values, std::vector<float>(values.size(), 0.0f));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  adam->write(StateKind::second_moments, values);
  EXPECT_EQ(read_state(*adam, StateKind::second_moments), values);
}

// A batch in parts is a batch with as many micro-batches more, in the memory of a part.
TEST_F(DeviceOptimizerTest, PartsOfABatchGiveTheBitsOfTheWholeBatch) {
  const NetSpec net = tiny_net();
  const EngineOptions whole = engine_options(12, 2);
  std::vector<TestBatch> batches;
  for (int step = 0; step < 3; ++step) {
    batches.push_back(make_batch(net, 12, static_cast<uint32_t>(70 + step)));
  }
  for (const int64_t bucket_bytes : {0, 512}) {
    const auto run = [&](const EngineOptions& options, int parts) {
      const auto engine = started_device_engine(net, options);
      int ready = 0;
      if (bucket_bytes > 0) engine->reduce_in_buckets(bucket_bytes, [&](BufferRange) { ++ready; });
      std::vector<BatchRows> rows;
      for (const TestBatch& batch : batches) {
        const int before = ready;
        const BatchRows there = placed(*engine, batch);
        for (int part = 0; part < parts; ++part) {
          const BatchRows own = part_of(batch, part, parts);
          BatchRows moved = there;
          moved.images += own.images - batch.images.data();
          moved.labels += own.labels - batch.labels.data();
          moved.weights += own.weights - batch.weights.data();
          moved.first = own.first;
          moved.last = own.last;
          EXPECT_EQ(ready, before);  // a bucket is summed once, with all parts
          engine->forward_backward(moved);
        }
        apply(*engine, {});
      }
      EXPECT_EQ(ready > 0, bucket_bytes > 0);
      return state_of(*engine);
    };
    const Trained expected = run(whole, 1);
    for (const int parts : {2, 3, 6}) {
      EngineOptions options = whole;
      options.rows = 12 / parts;
      options.accumulates = true;
      EXPECT_TRUE(expected == run(options, parts)) << parts << " parts";
      EXPECT_LT(make_device_engine(net, options)->planned_bytes(),
                make_device_engine(net, whole)->planned_bytes() + 1);
    }
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
    train_with(*trained, optimizer, 6, device_gradients);
    train_with(*server, optimizer, 6, [&](Engine& updated, const TestBatch& each) {
      pull();
      device_gradients(*replica, each);
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
    train_with(*trained, optimizer, 6, device_gradients);
    for (const StateKind state : {StateKind::parameters, StateKind::statistics}) {
      fresh->write(state, read_state(*trained, state));
    }
    std::vector<float> own(60), expected(60);
    trained->forward(placed(*trained, batch), {}, false, own);
    fresh->forward(placed(*fresh, batch), {}, false, expected);
    EXPECT_EQ(own, expected) << to_string(kind);
  }
}

TEST_F(DeviceOptimizerTest, ANumberThatIsNotFiniteChangesNothing) {
  const NetSpec net = tiny_net();
  const TestBatch batch = make_batch(net, 6, 9);
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    const auto engine = started_device_engine(net, engine_options_for(optimizer, 6, 6));
    train_with(*engine, optimizer, 6, device_gradients);
    const Trained before = state_of(*engine);
    TestBatch wrong = batch;
    wrong.labels[0] = net.classes;
    device_gradients(*engine, wrong);
    const std::vector<TensorUpdate> tensors(parameter_table(net).size(), {0.1f, 0.0f, false});
    UpdateArgs args;
    args.tensors = tensors;
    args.kind = kind;
    args.clip_norm = 0.3f;
    engine->update(args);
    EXPECT_FALSE(engine->step_metrics().finite);
    EXPECT_TRUE(before == state_of(*engine)) << to_string(kind);
  }
}

}  // namespace
}  // namespace stoker
