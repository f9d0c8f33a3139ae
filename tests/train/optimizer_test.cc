// The contract of every engine's optimizers: PyTorch's results, states only where they are needed,
// batches in parts, frozen tensors.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "tests/train/optimizer_fixture.h"
#include "tests/train/tested_engine.h"

namespace stoker {
namespace {

class OptimizerTest : public OnTestedEngine {};

TEST_F(OptimizerTest, FourStepsArePyTorchs) {
  compare_optimizers_with_pytorch(make_engine, run_pass);
}

// A batch in parts is a batch with as many micro-batches more, in the memory of a part.
TEST_F(OptimizerTest, PartsOfABatchGiveTheBitsOfTheWholeBatch) {
  const NetSpec net = tested_engine().parts_net;
  const OptimizerSpec optimizer = clipping(OptimizerKind::sgd);
  const EngineOptions whole = engine_options_for(optimizer, 12, 2, 2);
  for (const int64_t bucket_bytes : {0, 512}) {
    const auto run = [&](const EngineOptions& options, int parts) -> std::optional<Trained> {
      const auto engine = make_started_engine(net, options);
      int ready = 0;
      if (bucket_bytes > 0 &&
          !engine->reduce_in_buckets(bucket_bytes, [&](BufferRange) { ++ready; })) {
        return {};
      }
      train_with(*engine, optimizer, 12, [&](Engine&, const TestBatch& batch) {
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
        if (engine->stream()) {
          engine->stream()->synchronize();  // the batch may end before the work does
        } else {
          reduce(*engine);
        }
      });
      EXPECT_EQ(ready > 0, bucket_bytes > 0);
      return state_of(*engine);
    };
    const std::optional<Trained> expected = run(whole, 1);
    if (!expected) continue;
    const int64_t bytes = make_engine(net, whole)->planned_bytes();
    for (const int parts : {2, 3, 6}) {
      EngineOptions options = whole;
      options.rows = 12 / parts;
      options.accumulates = true;
      EXPECT_TRUE(expected == run(options, parts)) << parts << " parts";
      EXPECT_LE(make_engine(net, options)->planned_bytes(),
                tested_engine().part_takes_less ? bytes - 1 : bytes);
    }
  }
  const auto engine = make_engine(net, whole);
  const TestBatch batch = make_batch(net, 12, 1);
  BatchRows part = placed(*engine, batch);
  part.last = false;
  EXPECT_THROW(engine->forward_backward(part), std::invalid_argument);
}

TEST_F(OptimizerTest, MemoryIsTakenOnlyWhereItIsNeeded) {
  const NetSpec net = tiny_net();
  const auto make = [&](const OptimizerSpec& optimizer) {
    return make_engine(net, engine_options_for(optimizer, 6, 6));
  };
  const auto sgd = make({});
  EXPECT_THROW(read_state(*sgd, StateKind::second_moments), std::logic_error);
  const int64_t piece = tested_engine().piece_bytes;
  const auto floats = static_cast<int64_t>(sizeof(float)) * sgd->gradient_floats();
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    const auto adam = make(with_optimizer({}, kind));
    EXPECT_EQ(adam->planned_bytes() - sgd->planned_bytes(), (floats + piece - 1) / piece * piece);
    std::vector<float> values = read_state(*adam, StateKind::second_moments);
    EXPECT_EQ(values, std::vector<float>(values.size(), 0.0f));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    adam->write(StateKind::second_moments, values);
    EXPECT_EQ(read_state(*adam, StateKind::second_moments), values);
  }
  const auto [least, most] = tested_engine().norm_bytes;
  for (const OptimizerSpec& optimizer :
       {clipping(OptimizerKind::sgd), with_optimizer({}, OptimizerKind::lars)}) {
    const int64_t more = make(optimizer)->planned_bytes() - sgd->planned_bytes();
    EXPECT_GE(more, least);
    EXPECT_LE(more, most);
  }
}

TEST_F(OptimizerTest, AnEngineRefusesAnUpdateThatItWasNotMadeFor) {
  const auto engine = make_engine(tiny_net(), engine_options(6, 6));
  EXPECT_THROW(train_with(*engine, with_optimizer({}, OptimizerKind::adam), 6, run_pass),
               std::invalid_argument);
  EXPECT_THROW(train_with(*engine, clipping(OptimizerKind::sgd), 6, run_pass),
               std::invalid_argument);
}

// Frozen tensors keep their values and their moments, and their gradients do not count in norms.
TEST_F(OptimizerTest, FrozenTensorsDoNotCount) {
  const NetSpec net = tiny_net();
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    std::vector<float> after[2];
    for (const bool huge : {false, true}) {
      const auto engine = make_started_engine(net, engine_options_for(optimizer, 6, 6));
      const std::vector<float> before = read_state(*engine, StateKind::parameters);
      const auto gradients = [&](Engine& e, const TestBatch& batch) {
        run_pass(e, batch);
        if (huge) edit_sum(e, [](std::span<float> sum) { sum[0] = 1e6f; });
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
TEST_F(OptimizerTest, LarsMovesWeightsThatAreZero) {
  OptimizerSpec optimizer = with_optimizer({}, OptimizerKind::lars);
  const auto engine = make_engine(tiny_net(), engine_options_for(optimizer, 6, 6));
  train_with(*engine, optimizer, 6, run_pass);  // all parameters are 0
  for (const float value : read_state(*engine, StateKind::parameters)) {
    EXPECT_TRUE(std::isfinite(value));
  }
  EXPECT_NE(read_state(*engine, StateKind::parameters).back(), 0);
}

TEST_F(OptimizerTest, ANumberThatIsNotFiniteChangesNothing) {
  const NetSpec net = tiny_net();
  const TestBatch batch = make_batch(net, 6, 9);
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    const auto engine = make_started_engine(net, engine_options_for(optimizer, 6, 6));
    train_with(*engine, optimizer, 6, run_pass);
    const Trained before = state_of(*engine);
    run_pass(*engine, batch);
    edit_sum(*engine,
             [](std::span<float> sum) { sum[7] = std::numeric_limits<float>::infinity(); });
    update_once(*engine, optimizer);
    EXPECT_FALSE(engine->step_metrics().finite);
    EXPECT_TRUE(before == state_of(*engine)) << to_string(kind);
  }
}

}  // namespace
}  // namespace stoker
