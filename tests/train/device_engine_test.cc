// Tests of the device engine on the host's operations: what it queues, captures and rejects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "tests/support/wait_until.h"
#include "tests/train/device_fixture.h"
#include "train/device/engine.h"
#include "train/model/models.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

Trained trained(const DeviceTuning& tuning, Precision precision, int micro_batch_size,
                HostOpsState* state) {
  const NetSpec net = small_airnet();
  const auto engine =
      started_device_engine(net, engine_options(6, micro_batch_size, 1, precision), tuning, state);
  std::vector<TestBatch> batches;
  for (int step = 0; step < 5; ++step) batches.push_back(make_batch(net, 6, 10 + step));
  for (int step = 0; step < 5; ++step) {  // changes everything that may differ between steps
    TestSgd sgd;
    sgd.learning_rate = 0.02f * static_cast<float>(1 + step);
    sgd.momentum = 0.5f + 0.1f * static_cast<float>(step);
    sgd.nesterov = step % 2 == 0;
    if (step == 2 || step == 3) batches[step] = with_mixed_labels(batches[step], net, 60 + step);
    device_step(*engine, batches[step], sgd);
  }
  return state_of(*engine);
}

TEST(DeviceEngineTest, GraphsLeaveTheSameBits) {
  DeviceTuning eager;
  eager.graphs = false;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (const int micro_batch_size : {6, 3}) {
      HostOpsState state;
      const Trained captured = trained({}, precision, micro_batch_size, &state);
      EXPECT_TRUE(captured == trained(eager, precision, micro_batch_size, nullptr));
      EXPECT_EQ(state.captures, 2);  // of steps, of updates
      EXPECT_EQ(state.launches, 5 * 6 / micro_batch_size - 1 + 4);
    }
  }
}

// A convolution that also sums its output saves the following batch norm a pass; the training is
// the same.
TEST(DeviceEngineTest, SumsThatConvolutionsLeaveAreTheBatchNormsOwn) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 3);
  const auto run = [&](bool summing) {
    HostOpsState state;
    state.summing_convolutions = summing;
    const auto engine = started_device_engine(net, engine_options(4, 4), {}, &state);
    for (int step = 0; step < 2; ++step) device_step(*engine, batch);
    const auto found = std::ranges::count(engine->implementations(), "conv with sums:host");
    EXPECT_EQ(found, summing ? 1 : 0);
    return state_of(*engine);
  };
  const Trained with = run(true), without = run(false);
  EXPECT_FALSE(with == without);  // the sums are rounded differently
  EXPECT_LT(relative_distance(with.parameters, without.parameters), 1e-5);
  EXPECT_LT(relative_distance(with.statistics, without.statistics), 1e-5);
}

// A capture must not be the first run of a kernel: CUDA would load the kernel inside it.
TEST(DeviceEngineTest, WhatIsThawedRunsOnceBeforeItIsCaptured) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 7);
  std::vector<TensorUpdate> tensors(parameter_table(net).size(), {0.1f, 0.0f, false});
  UpdateArgs args;
  args.tensors = tensors;
  HostOpsState state;
  const auto engine = started_device_engine(net, engine_options(4, 4), {}, &state);
  const auto captures_of_a_step = [&](bool frozen) {
    tensors[0].frozen = frozen;
    const int before = state.captures;
    engine->expect_frozen(tensors);
    engine->forward_backward(batch.rows());
    const int captures = state.captures - before;
    engine->update(args);
    return captures;
  };
  EXPECT_EQ(captures_of_a_step(true), 0);  // the first step
  EXPECT_EQ(captures_of_a_step(true), 1);
  EXPECT_EQ(captures_of_a_step(false), 0);  // steps of the frozen tensor have never run
  EXPECT_EQ(captures_of_a_step(false), 1);
  EXPECT_EQ(captures_of_a_step(true), 1);  // all of its steps have run
  EXPECT_EQ(captures_of_a_step(true), 0);  // the same graph
}

TEST(DeviceEngineTest, WhatCannotBeCapturedIsQueuedPieceByPiece) {
  HostOpsState state;
  state.refuse_captures = true;
  const Trained queued = trained({}, Precision::fp32, 6, &state);
  EXPECT_EQ(state.launches, 0);
  EXPECT_EQ(state.captures, 1);
  EXPECT_TRUE(queued == trained({}, Precision::fp32, 6, nullptr));
  const TestBatch batch = make_batch(small_airnet(), 4, 1);  // must outlive the queued work
  const auto engine = started_device_engine(small_airnet(), engine_options(4, 4), {}, &state);
  for (int step = 0; step < 3; ++step) device_step(*engine, batch);
  EXPECT_THAT(engine->implementations(), ::testing::Contains("no graphs: captures are refused"));
}

// Graphs replay what they captured, but must use the new values of each step.
TEST(DeviceEngineTest, EveryStepHasItsOwnRatesAndLabels) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 3);
  const auto run = [&](float last_rate, const TestBatch& last) {
    const auto engine = started_device_engine(net, engine_options(4, 4));
    for (int step = 0; step < 4; ++step) device_step(*engine, batch);
    const std::vector<float> before = read_state(*engine, StateKind::parameters);
    TestSgd sgd;
    sgd.learning_rate = last_rate;
    device_step(*engine, last, sgd);
    const std::vector<float> after = read_state(*engine, StateKind::parameters);
    return relative_distance(after, before);
  };
  const double plain = run(0.05f, batch);
  EXPECT_GT(plain, 0);
  EXPECT_EQ(run(0, batch), 0);
  EXPECT_NEAR(run(0.1f, batch), 2 * plain, 1e-3 * plain);
  TestBatch mixed = with_mixed_labels(batch, net, 3);
  EXPECT_NE(run(0.05f, mixed), plain);
  // All of the target on the first label is the same as no second one.
  mixed.mix_weights.assign(4, 1.0f);
  EXPECT_EQ(run(0.05f, mixed), plain);
}

// The shares of a mixed step are still in the device's memory in the next one.
TEST(DeviceEngineTest, AMixedStepLeavesNothingToAPlainOne) {
  const NetSpec net = small_airnet();
  EngineOptions options = engine_options(16, 16);
  options.label_smoothing = 0.2f;
  const TestBatch batch = make_batch(net, 16, 3);
  const auto run = [&](const TestBatch& first) {
    const auto engine = started_device_engine(net, options);
    device_step(*engine, first, {0.0f, 0.0f, 0.0f, false});  // changes statistics only
    device_step(*engine, batch, {0.05f, 0.0f, 0.0f, false});
    return state_of(*engine);
  };
  EXPECT_TRUE(run(with_mixed_labels(batch, net, 3)) == run(batch));
}

TEST(DeviceEngineTest, NothingWaitsForTheDeviceUntilMetricsAreAsked) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 3);
  const auto engine = started_device_engine(net, engine_options(4, 4));
  std::binary_semaphore gate(0);
  engine->stream()->call([&] { gate.acquire(); });
  const int lag = engine->metrics_lag();
  ASSERT_GT(lag, 0);
  ASSERT_LT(lag, Engine::kMetricsKept);
  for (int step = 0; step <= lag; ++step) device_step(*engine, batch);  // returns: nothing waits
  std::jthread opener([&] {
    be_late(std::chrono::microseconds(1000));
    gate.release();
  });
  double last = std::numeric_limits<double>::infinity();
  for (int64_t update = 0; update <= lag; ++update) {
    const StepMetrics metrics = engine->step_metrics_of(update);
    EXPECT_EQ(metrics.weight_sum, 4);
    EXPECT_LT(metrics.loss_sum, last) << update;  // metrics of this step, not of the last
    last = metrics.loss_sum;
  }
  EXPECT_EQ(engine->step_metrics().loss_sum, last);
  EXPECT_THROW(engine->step_metrics_of(lag + 1), std::logic_error);
  EXPECT_THROW(engine->step_metrics_of(-1), std::logic_error);
  for (int step = 0; step < Engine::kMetricsKept; ++step) device_step(*engine, batch);
  EXPECT_THROW(engine->step_metrics_of(lag), std::logic_error);
  engine->step_metrics_of(lag + 1);
}

TEST(DeviceEngineTest, AProfileNamesEveryStepAndChangesNoState) {
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 1);
  DeviceEngine engine(net, engine_options(4, 4), {}, host_device(), host_ops_factory());
  device_step(engine, batch);
  const Trained before = state_of(engine);
  double ms = 0, flops = 0;
  bool back = false;
  for (const DeviceStepTime& time : engine.profile(2)) {
    EXPECT_GE(time.ms, 0) << time.step;
    ms += time.ms;
    if (time.step == "conv") flops += time.flops;
    back = back || (time.step == "conv_weights" && time.where == "layers.0.conv1");
  }
  EXPECT_GT(ms, 0);
  EXPECT_TRUE(back);
  EXPECT_NEAR(flops, 4 * forward_flops(net), 0.5 * flops);  // the padded input adds a little
  EXPECT_TRUE(before == state_of(engine));
  device_step(engine, batch);
  EXPECT_TRUE(engine.step_metrics().finite);
}

TEST(DeviceEngineTest, BadRequestsAreRefusedWithTheirNumbers) {
  const NetSpec net = small_airnet();
  EXPECT_THROW(make_device_engine(net, engine_options(10, 4)), std::invalid_argument);
  EngineOptions few = engine_options(8, 4);
  few.nominal_rows = 4;
  EXPECT_THROW(make_device_engine(net, few), std::invalid_argument);
  EngineOptions flat = engine_options(8, 4);
  flat.stddev[1] = 0;
  EXPECT_THROW(make_device_engine(net, flat), std::invalid_argument);
  const auto engine = make_device_engine(net, engine_options(4, 4));
  const TestBatch batch = make_batch(net, 4, 1);
  std::vector<float> logits(40), short_logits(39);
  EXPECT_THROW(engine->forward(batch.rows(), {false, 32, 0}, false, logits), std::invalid_argument);
  EXPECT_THROW(engine->forward(batch.rows(), {}, false, short_logits), std::invalid_argument);
}

TEST(DeviceEngineTest, MemoryThatIsShortNamesWhatIsAskedAndWhatFits) {
  const NetSpec net = make_net("resnet18", {64, 64}, 10);
  DeviceTuning tuning;
  tuning.workspace_limit = 1 << 20;
  HostOpsState state;
  state.free_bytes = int64_t{400} << 20;
  try {
    make_device_engine(net, engine_options(4096, 4096), tuning, &state);
    FAIL() << "4096 rows were accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("training 'resnet18' with 4096 samples needs"));
    EXPECT_THAT(error.what(), HasSubstr("400.0 MiB are free"));
    EXPECT_THAT(error.what(), HasSubstr("the largest batch that fits is about"));
    EXPECT_THAT(error.what(), HasSubstr("activations and their gradients"));
  }
}

TEST(DeviceEngineTest, TheLargestBatchFitsAndTheNextDoesNot) {
  const NetSpec net = make_net("resnet18", {64, 64}, 10);
  DeviceTuning tuning;
  tuning.workspace_limit = 1 << 20;
  const int64_t bytes = int64_t{600} << 20, slots = 2 * 64 * 64 * 3;
  const EngineOptions options = engine_options(8, 8, 1, Precision::bf16);
  const int64_t largest = largest_device_batch(net, options, tuning, bytes, slots, 8);
  ASSERT_GT(largest, 8);
  EXPECT_EQ(largest % 8, 0);
  const auto taken = [&](int64_t rows) {
    const EngineOptions of =
        engine_options(static_cast<int>(rows), static_cast<int>(rows), 1, Precision::bf16);
    return planned_device_sizes(net, of, tuning).total() + rows * slots;
  };
  EXPECT_LE(taken(largest), bytes);
  EXPECT_GT(taken(largest + 8), bytes);
  EXPECT_EQ(largest_device_batch(net, options, tuning, 1 << 20, slots, 8), 0);
}

}  // namespace
}  // namespace stoker
