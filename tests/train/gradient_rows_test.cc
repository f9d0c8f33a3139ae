// How rows, micro-batches, statistics and views affect the CPU engine's results; and the reference
// for gradients against finite differences.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/train/gradient_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

TEST(GradientRowsTest, RowsOfWeightZeroLeaveNoTrace) {
  const NetSpec net = around("gap", [](NetBuilder& n, int x) { return n.plain(OpKind::gelu, x); });
  const std::vector<float> parameters = lively_parameters(net);
  TestBatch padded = make_batch(net, 4, 5);
  TestBatch other = padded;
  padded.weights[2] = padded.weights[3] = 0;
  other.weights = padded.weights;
  const size_t image = padded.images.size() / 4;
  for (size_t i = 2 * image; i < other.images.size(); ++i) other.images[i] ^= 0x5a;
  std::vector<double> gradients[3];
  for (int i = 0; i < 2; ++i) {
    const auto engine = make_cpu_engine(net, engine_options(4, 4));
    engine->write(StateKind::parameters, parameters);
    gradients[i] = engine_gradients(*engine, i == 0 ? padded : other);
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  TestBatch small = padded;  // only the two rows that count
  small.images.resize(2 * image);
  small.labels.resize(2);
  small.weights.resize(2);
  const auto engine = make_cpu_engine(net, engine_options(2, 2));
  engine->write(StateKind::parameters, parameters);
  expect_gradients(net, engine_gradients(*engine, small), gradients[0], 1e-6);
}

TEST(GradientRowsTest, MicroBatchesAreOneBatchWithoutBatchNorm) {
  const NetSpec net = around("plain", [](NetBuilder& n, int x) {
    return n.plain(OpKind::relu, n.max_pool(n.conv("c", x, 8, 3, 1, 1), 2, 2, 0));
  });
  const std::vector<float> parameters = lively_parameters(net);
  const TestBatch batch = with_mixed_labels(make_batch(net, 12, 5), net, 5);
  std::vector<double> whole;
  for (const int micro_batch_size : {12, 6, 4, 3, 1}) {
    const auto engine = make_cpu_engine(net, engine_options(12, micro_batch_size, 2));
    engine->write(StateKind::parameters, parameters);
    const std::vector<double> gradients = engine_gradients(*engine, batch);
    if (whole.empty()) whole = gradients;
    expect_gradients(net, gradients, whole, 2e-6);
  }
}

// Running statistics are those of the union of all micro-batches, as in PyTorch.
TEST(GradientRowsTest, RunningStatisticsOfTheUnionOfMicroBatches) {
  const NetSpec net =
      around("norm", [](NetBuilder& n, int x) { return n.batch_norm("b", x, 1e-5f, 0.3f); });
  const std::vector<float> parameters = lively_parameters(net);
  const EngineOptions options = engine_options(8, 2, 2);
  const auto engine = make_cpu_engine(net, options);
  EngineOptions joined = options;
  joined.micro_batch_size = 8;
  std::vector<double> expected(16, 0.0);
  std::fill(expected.begin() + 8, expected.end(), 1.0);
  for (int step = 0; step < 3; ++step) {
    engine->write(StateKind::parameters, parameters);
    const TestBatch batch = make_batch(net, 8, 40 + step);
    train_step(*engine, batch, {1e-6f, 0, 0, false});
    const ReferenceStep reference =
        reference_step(net, to_double(parameters), reference_input(batch, joined));
    const double count = 8.0 * 9 * 10;
    for (int c = 0; c < 16; ++c) {
      const double batch_value = reference.statistics[c] * (c < 8 ? 1 : count / (count - 1));
      expected[c] = 0.7 * expected[c] + 0.3 * batch_value;
    }
    const std::vector<float> running = read_state(*engine, StateKind::statistics);
    for (int c = 0; c < 16; ++c) EXPECT_NEAR(running[c], expected[c], 2e-6 * (1 + expected[c]));
  }
}

TEST(GradientRowsTest, EvaluationUsesRunningStatistics) {
  for (const char* model : {"resnet20", "resnet18"}) {
    const NetSpec net = make_net(model, {32, 32}, 7);
    const EngineOptions options = engine_options(2, 2);
    const auto engine = make_cpu_engine(net, options);
    const std::vector<float> parameters = lively_parameters(net);
    std::vector<float> statistics = initial_statistics(net);
    for (size_t i = 0; i < statistics.size(); ++i) {
      statistics[i] += static_cast<float>(noise(7, i) % 100) / 200.0f;
    }
    engine->write(StateKind::parameters, parameters);
    engine->write(StateKind::statistics, statistics);
    const TestBatch batch = make_batch(net, 2, 3);
    std::vector<float> logits(14);
    engine->forward(batch.rows(), {}, false, logits);
    const std::vector<double> expected = reference_logits(
        net, to_double(parameters), to_double(statistics), reference_input(batch, options));
    EXPECT_LT(distance(to_double(logits).data(), expected.data(), 14),
              1e-5 * norm(expected.data(), 14));
  }
}

TEST(GradientRowsTest, ViewsShiftThenMirror) {
  const NetSpec net =
      around("view", [](NetBuilder& n, int x) { return n.conv("c", x, 4, 3, 2, 1); });
  const auto engine = make_cpu_engine(net, engine_options(1, 1));
  engine->write(StateKind::parameters, lively_parameters(net));
  const TestBatch batch = make_batch(net, 1, 3);
  const int width = net.input.width, height = net.input.height;
  TestBatch seen = batch;
  const auto reflected = [](int i, int n) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int from_x = reflected(width - 1 - x + 2, width), from_y = reflected(y - 1, height);
      for (int c = 0; c < 3; ++c) {
        seen.images[(y * width + x) * 3 + c] = batch.images[(from_y * width + from_x) * 3 + c];
      }
    }
  }
  std::vector<float> expected(5), actual(5);
  engine->forward(seen.rows(), {}, false, expected);
  engine->forward(batch.rows(), {true, 2, -1}, false, actual);
  EXPECT_EQ(actual, expected);
}

TEST(GradientRowsTest, TargetsAreRefusedThatNoNetLearns) {
  NetBuilder builder("binary", {9, 10}, 3);
  builder.loss(LossKind::binary);
  builder.linear("fc", builder.adaptive_avg_pool(0, {1, 1}), true, 1.0f);
  NetSpec net = builder.finish();
  const TestBatch good = with_targets(make_batch(net, 2, 21), net, 41);
  for (const float value : {-0.1f, 1.1f, std::nanf("")}) {
    TestBatch bad = good;
    bad.targets[4] = value;
    EXPECT_THROW(train_step(*started_engine(net, engine_options(2, 2)), bad),
                 std::invalid_argument);
  }
  net.loss = LossKind::softmax;
  EXPECT_THROW(train_step(*started_engine(net, engine_options(2, 2)), good), std::invalid_argument);
}

TEST(ReferenceNetTest, GradientsAreFiniteDifferences) {
  const auto everything = [](NetBuilder& n, int x) {
    x = n.plain(OpKind::gelu, n.max_pool(n.conv("c", x, 6, 3, 1, 1, true), 2, 2, 0));
    const int branch = n.batch_norm("b", n.conv("d", x, 8, 3, 2, 1), 1e-5f, 0.1f);
    x = n.plain(OpKind::relu, n.add(branch, n.pad_channels(x, 8, 2)));
    x = n.concat({x, n.plain(OpKind::tanh, n.conv("e", x, 3, {3, 1}, 1, {1, 0}))});
    n.linear("aux", n.adaptive_avg_pool(x, {1, 1}), true, 1.0f, 0.3f);
    x = n.dropout(n.avg_pool(n.adaptive_avg_pool(x, {4, 5}), 2, 1, 1), 0.3f);
    return n.plain(OpKind::sigmoid, n.fully_connected("f", x, 6));
  };
  const NetSpec net = around("everything", everything);
  const EngineOptions options = engine_options(3, 3);
  const TestBatch batch = with_mixed_labels(make_batch(net, 3, 2), net, 2);
  ReferenceInput input = reference_input(batch, options);
  input.label_smoothing = 0.1f;
  const std::vector<double> parameters = to_double(lively_parameters(net));
  const ReferenceStep step = reference_step(net, parameters, input);
  for (const TensorInfo& info : parameter_table(net)) {
    std::vector<double> ahead = parameters, behind = parameters;
    double slope = 0;
    for (int64_t i = info.offset; i < info.offset + info.count; ++i) {
      const double direction = noise(5, i) / 4294967296.0 - 0.5;
      ahead[i] += 1e-6 * direction;
      behind[i] -= 1e-6 * direction;
      slope += direction * step.gradients[i];
    }
    const double measured =
        (reference_loss(net, ahead, input) - reference_loss(net, behind, input)) / 2e-6;
    EXPECT_NEAR(measured, slope, 1e-6 + 1e-6 * std::abs(slope)) << info.name;
  }
}

}  // namespace
}  // namespace stoker
