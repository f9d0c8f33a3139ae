// Tests of the CPU engine's optimizers: PyTorch's results, bits that do not depend on workers, and
// states only where they are needed.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/train/optimizer_fixture.h"

namespace stoker {
namespace {

void summed_gradients(Engine& engine, const TestBatch& batch) {
  engine.forward_backward(batch.rows());
  reduce(engine);
}

TEST(OptimizerTest, FourStepsArePyTorchs) {
  compare_optimizers_with_pytorch(make_cpu_engine, summed_gradients);
}

// Tensors that are longer than a chunk, and more workers than one.
TEST(OptimizerTest, BitsDoNotDependOnTheWorkers) {
  const NetSpec net = make_net("airnet", {32, 32}, 10);
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    const auto run = [&](int workers) {
      const auto engine = started_engine(net, engine_options_for(optimizer, 6, 2, workers));
      train_with(*engine, optimizer, 6, summed_gradients);
      return state_of(*engine);
    };
    EXPECT_TRUE(run(1) == run(3)) << to_string(kind);
  }
}

// A batch in parts is a batch with as many micro-batches more, in less memory.
TEST(OptimizerTest, PartsOfABatchGiveTheBitsOfTheWholeBatch) {
  const NetSpec net = make_net("airnet", {32, 32}, 10);
  const OptimizerSpec optimizer = clipping(OptimizerKind::sgd);
  const EngineOptions whole = engine_options_for(optimizer, 12, 2, 2);
  const auto one = started_engine(net, whole);
  train_with(*one, optimizer, 12, summed_gradients);
  for (const int parts : {2, 3, 6}) {
    EngineOptions options = whole;
    options.rows = 12 / parts;
    options.accumulates = true;
    const auto engine = started_engine(net, options);
    EXPECT_LT(engine->planned_bytes(), one->planned_bytes());
    const auto gradients = [&](Engine& e, const TestBatch& batch) {
      for (int part = 0; part < parts; ++part) {
        e.forward_backward(part_of(batch, part, parts));
      }
      reduce(e);
    };
    train_with(*engine, optimizer, 12, gradients);
    EXPECT_TRUE(state_of(*one) == state_of(*engine)) << parts << " parts";
  }
  EXPECT_THROW(one->forward_backward(part_of(make_batch(net, 12, 1), 0, 1 + 1)),
               std::invalid_argument);
}

TEST(OptimizerTest, SecondMomentsAreThereOnlyForAdam) {
  const NetSpec net = tiny_net();
  const auto make = [&](OptimizerKind kind) {
    return make_cpu_engine(net, engine_options_for(with_optimizer({}, kind), 6, 6));
  };
  const auto sgd = make(OptimizerKind::sgd), lars = make(OptimizerKind::lars);
  EXPECT_THROW(read_state(*sgd, StateKind::second_moments), std::logic_error);
  EXPECT_EQ(lars->planned_bytes(), sgd->planned_bytes());
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    const auto adam = make(kind);
    const auto more = static_cast<int64_t>(sizeof(float)) * adam->gradient_floats();
    EXPECT_EQ(adam->planned_bytes(), sgd->planned_bytes() + more);
    std::vector<float> values = read_state(*adam, StateKind::second_moments);
    EXPECT_EQ(values, std::vector<float>(values.size(), 0.0f));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    adam->write(StateKind::second_moments, values);
    EXPECT_EQ(read_state(*adam, StateKind::second_moments), values);
  }
}

TEST(OptimizerTest, AnEngineRefusesAnUpdateThatItWasNotMadeFor) {
  const NetSpec net = tiny_net();
  const auto engine = make_cpu_engine(net, engine_options(6, 6));
  EXPECT_THROW(train_with(*engine, with_optimizer({}, OptimizerKind::adam), 6, summed_gradients),
               std::invalid_argument);
  EXPECT_THROW(train_with(*engine, clipping(OptimizerKind::sgd), 6, summed_gradients),
               std::invalid_argument);
}

// Frozen tensors keep their values and their moments, and their gradients do not count in norms.
TEST(OptimizerTest, FrozenTensorsDoNotCount) {
  const NetSpec net = tiny_net();
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    std::vector<float> after[2];
    for (const bool huge : {false, true}) {
      const auto engine = started_engine(net, engine_options_for(optimizer, 6, 6));
      const std::vector<float> before = read_state(*engine, StateKind::parameters);
      const auto gradients = [&](Engine& e, const TestBatch& batch) {
        summed_gradients(e, batch);
        if (huge) e.reduced_gradients()[0] = 1e6f;
      };
      train_with(*engine, optimizer, 6, gradients, {0});
      after[huge] = read_state(*engine, StateKind::parameters);
      const int64_t frozen = parameter_table(net)[0].count;
      EXPECT_TRUE(std::equal(before.begin(), before.begin() + frozen, after[huge].begin()));
      EXPECT_NE(before.back(), after[huge].back());
    }
    EXPECT_EQ(after[0], after[1]) << to_string(kind);
  }
}

// The trust ratio of weights that are all 0 would be 0 for ever.
TEST(OptimizerTest, LarsMovesWeightsThatAreZero) {
  const NetSpec net = tiny_net();
  OptimizerSpec optimizer = with_optimizer({}, OptimizerKind::lars);
  const auto engine = make_cpu_engine(net, engine_options_for(optimizer, 6, 6));
  train_with(*engine, optimizer, 6, summed_gradients);  // all parameters are 0
  for (const float value : read_state(*engine, StateKind::parameters)) {
    EXPECT_TRUE(std::isfinite(value));
  }
  EXPECT_NE(read_state(*engine, StateKind::parameters).back(), 0);
}

}  // namespace
}  // namespace stoker
