// Tests of a device's operations (emulated kernels, a GPU) against the plain loops: whole steps of
// nets that together use every operation, at every width and with blocks that split the pixels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/wait_until.h"
#include "tests/train/device_fixture.h"
#include "tests/train/sync_norm_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

// Channels that match no kernel's width, all pools, biases, a shortcut of each kind.
NetSpec odd_net() {
  NetBuilder net("odd", {19, 14}, 11);
  int x = net.conv("stem", 0, 12, 3, 1, 1, true);
  x = net.plain(OpKind::gelu, net.batch_norm("n0", x, 1e-5f, 0.2f));
  x = net.max_pool(x, 3, 2, 1);
  const int branch = net.batch_norm("n1", net.conv("c1", x, 20, 3, 2, 1), 1e-3f, 0.1f);
  x = net.plain(OpKind::relu, net.add(branch, net.pad_channels(x, 20, 2)));
  const int second = net.batch_norm("n2", net.conv("c2", x, 20, 3, 1, 1), 1e-5f, 0.1f);
  x = net.add(net.plain(OpKind::relu, second), x);
  x = net.plain(OpKind::relu, net.conv("c3", x, 24, 1, 1, 0));
  net.linear("fc", net.adaptive_avg_pool(x, {1, 1}), true, 0.5f);
  return net.finish();
}

// Enough pixels that every block of the sums has several splits.
NetSpec wide_net() {
  NetBuilder net("wide", {64, 48}, 5);
  int x = net.conv("stem", 0, 8, 3, 1, 1);
  x = net.plain(OpKind::relu, net.batch_norm("n0", x, 1e-5f, 0.1f));
  x = net.max_pool(net.conv("c1", x, 264, 1, 4, 0), 2, 2, 0);
  x = net.plain(OpKind::gelu, net.batch_norm("n1", x, 1e-5f, 0.1f));
  net.linear("fc", net.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
  return net.finish();
}

// Enough pixels that the splits of a sum are added up in groups, with every activation that a batch
// norm fuses, with and without a residual.
NetSpec tall_net() {
  NetBuilder net("tall", {112, 104}, 5);
  int x =
      net.plain(OpKind::relu, net.batch_norm("n0", net.conv("stem", 0, 16, 1, 1, 0), 1e-5f, 0.1f));
  const int branch = net.batch_norm("n1", net.conv("c1", x, 16, 1, 1, 0), 1e-5f, 0.1f);
  x = net.plain(OpKind::relu, net.add(branch, x));
  const int second = net.batch_norm("n2", net.conv("c2", x, 16, 1, 1, 0), 1e-5f, 0.1f);
  x = net.plain(OpKind::gelu, net.batch_norm("n3", net.add(second, x), 1e-5f, 0.1f));
  net.linear("fc", net.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
  return net.finish();
}

// Shapes that the nets above do not have: each with 8 or 16 channels and with an odd number.
NetSpec varied_net(LossKind loss, int outputs) {
  NetBuilder net("varied", {19, 14}, outputs);
  net.loss(loss);
  if (loss == LossKind::binary) net.gray_input();
  int x = net.plain(OpKind::tanh, net.conv("stem", 0, 16, {5, 1}, 1, {2, 0}, true));
  const int left = net.plain(OpKind::sigmoid, net.conv("left", x, 5, {1, 3}, 1, {0, 1}, true));
  const int right = net.conv("right", x, 8, 1, 1, 0);
  x = net.concat({net.avg_pool(x, 3, 1, 1), left, right, right});
  x = net.concat({net.conv("c1", x, 16, 3, 1, 1), net.conv("c2", x, 8, 3, 1, 1)});
  x = net.dropout(net.max_pool(x, 3, 2, 0, true), 0.3f);
  const int branch = net.conv("aux", net.adaptive_avg_pool(x, {4, 3}), 7, 1, 1, 0);
  net.linear("aux.fc", net.adaptive_avg_pool(branch, {1, 1}), true, 1.0f, 0.4f);
  x = net.plain(OpKind::relu, net.fully_connected("f", net.avg_pool(x, 2, 2, 0), 21));
  net.linear("fc", net.dropout(x, 0.5f), true, 1.0f);
  return net.finish();
}

// A first convolution that train/cuda/folded_conv.h folds.
NetSpec stem_net(Size size, int kernel, int padding, bool gray) {
  NetBuilder net("stem", size, 5);
  if (gray) net.gray_input();
  int x = net.conv("stem", 0, 16, kernel, 2, padding);
  x = net.plain(OpKind::relu, net.batch_norm("n0", x, 1e-5f, 0.1f));
  net.linear("fc", net.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
  return net.finish();
}

struct StepsOutcome {
  Trained state;
  std::vector<StepMetrics> metrics;
  std::vector<float> logits, averaged;
};

using Place = BatchRows (*)(Engine&, const TestBatch&);

BatchRows in_place(Engine&, const TestBatch& batch) { return batch.rows(); }

StepsOutcome outcome_of(Engine& engine, Place place) {
  const NetSpec& net = engine.net();
  engine.write(StateKind::parameters, lively_parameters(net));
  const int rows = 6;
  std::vector<TestBatch> batches;
  for (int step = 0; step < 4; ++step) batches.push_back(make_batch(net, rows, 50 + step));
  batches[1].weights[2] = 0;
  for (const int step : {0, 3}) batches[step] = with_mixed_labels(batches[step], net, 60 + step);
  batches[2].labels[0] = label_count(net);  // invalid: the step changes nothing
  if (net.loss == LossKind::binary) {       // changes from labels to targets, and back
    for (const int step : {1, 2}) batches[step] = with_targets(batches[step], net, 70 + step);
    batches[2].targets[1] = 1.5f;
  }
  StepsOutcome outcome;
  for (int step = 0; step < 4; ++step) {
    TestSgd sgd;
    sgd.learning_rate = 0.01f;
    sgd.nesterov = step % 2 == 0;
    engine.forward_backward(place(engine, batches[step]));
    apply(engine, sgd);
    if (step == 2) engine.blend_average(0.5f, true);
    outcome.metrics.push_back(engine.step_metrics());
  }
  outcome.state = state_of(engine);
  outcome.logits.resize(static_cast<size_t>(rows) * net.classes);
  outcome.averaged = outcome.logits;
  const BatchRows rows_there = place(engine, batches[0]);
  engine.forward(rows_there, {true, 1, -2}, false, outcome.logits);
  engine.forward(rows_there, {false, -1, 0}, true, outcome.averaged);
  return outcome;
}

// Chooses the convolutions' plans by heuristics, so that every engine has the same.
DeviceTuning steady() {
  DeviceTuning tuning;
  tuning.autotune = false;
  return tuning;
}

void compare_steps(const NetSpec& net, Precision precision, int micro_batch_size) {
  const EngineOptions options = engine_options(6, micro_batch_size, 1, precision);
  const auto device = make_device_engine(net, options, steady());
  const auto loops = make_loop_engine(net, options);
  const StepsOutcome a = outcome_of(*device, placed), b = outcome_of(*loops, in_place);
  // In bf16 a sum in another order may round to the neighbouring value.
  const double tolerance = precision == Precision::fp32 ? 2e-5 : 2e-2;
  EXPECT_LT(relative_distance(a.state.parameters, b.state.parameters), tolerance) << net.name;
  EXPECT_LT(relative_distance(a.state.momenta, b.state.momenta), 20 * tolerance) << net.name;
  EXPECT_LT(relative_distance(a.state.statistics, b.state.statistics), tolerance) << net.name;
  EXPECT_LT(relative_distance(a.logits, b.logits), 5 * tolerance) << net.name;
  EXPECT_LT(relative_distance(a.averaged, b.averaged), 5 * tolerance) << net.name;
  for (size_t step = 0; step < a.metrics.size(); ++step) {
    EXPECT_EQ(a.metrics[step].finite, step != 2);
    EXPECT_EQ(a.metrics[step].finite, b.metrics[step].finite);
    EXPECT_EQ(a.metrics[step].weight_sum, b.metrics[step].weight_sum);
    if (step == 2) continue;
    EXPECT_NEAR(a.metrics[step].loss_sum, b.metrics[step].loss_sum,
                tolerance * b.metrics[step].loss_sum);
    if (precision == Precision::bf16) continue;
    EXPECT_FLOAT_EQ(a.metrics[step].top1, b.metrics[step].top1);
    EXPECT_FLOAT_EQ(a.metrics[step].top5, b.metrics[step].top5);
  }
}

TEST_P(DeviceStepsTest, OddShapesAreThePlainLoops) {
  compare_steps(odd_net(), GetParam(), GetParam() == Precision::fp32 ? 3 : 6);
}

TEST_P(DeviceStepsTest, VariedOperationsAreThePlainLoops) {
  const int micro_batch = GetParam() == Precision::fp32 ? 3 : 6;
  compare_steps(varied_net(LossKind::softmax, 11), GetParam(), micro_batch);
  compare_steps(varied_net(LossKind::binary, 11), GetParam(), micro_batch);
  compare_steps(varied_net(LossKind::binary, 1), GetParam(), micro_batch);
}

TEST_P(DeviceStepsTest, SplitSumsAreThePlainLoops) { compare_steps(wide_net(), GetParam(), 6); }

TEST_P(DeviceStepsTest, SumsInGroupsAreThePlainLoops) { compare_steps(tall_net(), GetParam(), 6); }

TEST_P(DeviceStepsTest, FoldedStemsAreThePlainLoops) {
  compare_steps(stem_net({38, 45}, 7, 3, false), GetParam(), 6);
  compare_steps(stem_net({29, 16}, 5, 2, true), GetParam(), 6);
}

// Trains two replicas, each with its own gradients, whose batch norms see the rows of both.
std::vector<Trained> trained_together(const NetSpec& net, Precision precision,
                                      const SyncReplicas::Make& make, Place place) {
  std::vector<TestBatch> batches;  // outlive the queued work
  for (uint32_t i = 0; i < 4; ++i) batches.push_back(make_batch(net, 6, 80 + i));
  MeetingReplicas replicas(net, {2, 2, 3}, precision, make);
  std::vector<BatchRows> rows;
  for (int i = 0; i < 4; ++i) {
    replicas[i / 2].write(StateKind::parameters, lively_parameters(net));
    rows.push_back(place(replicas[i / 2], batches[static_cast<size_t>(i)]));
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      for (int step = 0; step < 2; ++step) {
        replicas[rank].forward_backward(rows[static_cast<size_t>(2 * rank + step)]);
        apply(replicas[rank], {0.01f, 5e-4f, 0.9f, true});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {state_of(replicas[0]), state_of(replicas[1])};
}

TEST_P(DeviceStepsTest, SynchronisedReplicasAreThePlainLoops) {
  for (const NetSpec& net : {odd_net(), tall_net()}) {
    const auto on_device = [&] {
      return trained_together(
          net, GetParam(),
          [&](const EngineOptions& options) { return make_device_engine(net, options, steady()); },
          placed);
    };
    const std::vector<Trained> device = on_device(), loops = trained_together(
                                                         net, GetParam(),
                                                         [&](const EngineOptions&options) {
                                                           return make_loop_engine(net, options);
                                                         },
                                                         in_place);
    const double tolerance = GetParam() == Precision::fp32 ? 2e-5 : 2e-2;
    for (size_t rank = 0; rank < 2; ++rank) {
      const Trained &a = device[rank], &b = loops[rank];
      EXPECT_LT(relative_distance(a.parameters, b.parameters), tolerance) << net.name;
      EXPECT_LT(relative_distance(a.momenta, b.momenta), 20 * tolerance) << net.name;
      EXPECT_LT(relative_distance(a.statistics, b.statistics), tolerance) << net.name;
    }
    EXPECT_TRUE(on_device() == device) << net.name << ": other bits";
  }
}

// Blocks run in another order each time (on a GPU by chance, in the emulator by design).
TEST_P(DeviceStepsTest, TheBitsDoNotDependOnWhichBlockComesLast) {
  const auto run = [&] {
    const TestBatch batch = make_batch(tall_net(), 6, 4);  // must outlive the queued work
    const auto engine =
        started_device_engine(tall_net(), engine_options(6, 6, 1, GetParam()), steady());
    const BatchRows rows = placed(*engine, batch);
    engine->forward_backward(rows);
    apply(*engine, {});
    return state_of(*engine);
  };
  EXPECT_TRUE(run() == run());
}

TEST_P(DeviceStepsTest, TwoRunsAndGraphsLeaveTheSameBits) {
  const NetSpec net = odd_net();
  const auto run = [&](bool graphs) {
    DeviceTuning tuning = steady();
    tuning.graphs = graphs;
    const auto engine = make_device_engine(net, engine_options(6, 3, 1, GetParam()), tuning);
    return outcome_of(*engine, placed).state;
  };
  const Trained first = run(true);
  EXPECT_TRUE(first == run(true));
  EXPECT_TRUE(first == run(false));
}

TEST_P(DeviceStepsTest, ALearntBatchIsKnownByHeart) {
  const NetSpec net = make_net("airnet", {32, 32}, 10, {{8, 16, 16}});
  const TestBatch batch = make_batch(net, 8, 5);  // must outlive the queued work
  const auto engine = started_device_engine(net, engine_options(8, 8, 1, GetParam()));
  const BatchRows rows = placed(*engine, batch);
  TestSgd sgd;
  sgd.learning_rate = 0.1f;
  const int steps = 8;
  double first = 0;
  for (int step = 0; step < steps; ++step) {
    engine->forward_backward(rows);
    apply(*engine, sgd);
    if (step == 0) first = engine->step_metrics().loss_sum;
  }
  EXPECT_TRUE(engine->step_metrics().finite);
  EXPECT_LT(engine->step_metrics().loss_sum, 0.7 * first);
}

TEST_P(DeviceStepsTest, NothingWaitsForTheDeviceUntilMetricsAreAsked) {
  const NetSpec net = wide_net();
  const TestBatch batch = make_batch(net, 6, 3);
  const auto engine = started_device_engine(net, engine_options(6, 6, 1, GetParam()));
  const BatchRows rows = placed(*engine, batch);
  for (int step = 0; step < 2; ++step) {  // lazy loading may wait
    engine->forward_backward(rows);
    apply(*engine, {});
  }
  engine->step_metrics();
  std::binary_semaphore gate(0);
  engine->stream()->call([&] { gate.acquire(); });
  for (int step = 0; step <= engine->metrics_lag(); ++step) {  // returns: nothing waits
    engine->forward_backward(rows);
    apply(*engine, {});
  }
  std::jthread opener([&] {
    be_late(std::chrono::microseconds(1000));
    gate.release();
  });
  EXPECT_EQ(engine->step_metrics().weight_sum, 6);
}

TEST_P(DeviceStepsTest, MemoryThatIsShortNamesWhatFits) {
  const int rows = 1 << 20;
  try {
    make_device_engine(make_net("resnet50", {224, 224}, 1000),
                       engine_options(rows, rows, 1, GetParam()), steady());
    FAIL() << rows << " rows were accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("training 'resnet50' with 1048576 samples needs"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the largest batch that fits is about"));
  }
}

}  // namespace
}  // namespace stoker
