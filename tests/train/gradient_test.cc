// The CPU engine against its double-precision twin, and the twin against finite differences.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/reference_net.h"
#include "tests/train/engine_fixture.h"
#include "train/models.h"

namespace stoker {
namespace {

ReferenceInput reference_input(const TestBatch& batch, const EngineOptions& options,
                               int shard = 0) {
  const int rows = options.rows_per_shard;
  const size_t image = batch.images.size() / batch.labels.size();
  ReferenceInput input;
  input.images = batch.images.data() + shard * rows * image;
  input.labels = batch.labels.data() + shard * rows;
  input.weights = batch.weights.data() + shard * rows;
  input.rows = rows;
  input.mean = options.mean;
  input.stddev = options.stddev;
  input.label_smoothing = options.label_smoothing;
  return input;
}

std::vector<double> to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

double distance(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

double norm(const double* a, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * a[i];
  return std::sqrt(sum);
}

// Parameters that hide nothing: batch norms off their neutral values, no zeros.
std::vector<float> lively_parameters(const NetSpec& net) {
  std::vector<float> values = initial_parameters(net, {3, ConvInit::uniform, false});
  for (const TensorInfo& info : parameter_table(net)) {
    for (int64_t i = 0; i < info.count; ++i) {
      const float wobble = static_cast<float>(noise(99, info.offset + i) % 1000) / 1000.0f - 0.5f;
      if (info.kind == ParameterKind::norm_weight) values[info.offset + i] += wobble;
      if (info.kind == ParameterKind::norm_bias) values[info.offset + i] += wobble;
    }
  }
  return values;
}

// The gradients as the optimiser sees them: momentum after one step from zero with momentum 0.
std::vector<double> engine_gradients(Engine& engine, const TestBatch& batch, const Mix& mix) {
  train_step(engine, batch, {1e-6f, 0.0f, 0.0f, false}, mix);
  return to_double(read_state(engine, StateKind::momenta));
}

// A ReLU or a maximum near its edge may go the other way, in fp32 once in a million: operations are
// held tensor by tensor, whole nets by the direction of all gradients together.
struct Tolerance {
  double fp32 = 2e-5, bf16 = 0.2;               // of a tensor's norm
  double fp32_cosine = 0.0, bf16_cosine = 0.0;  // if not 0, instead
};

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<int64_t>(a.size());
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i) product += a[i] * b[i];
  return product / norm(a.data(), count) / norm(b.data(), count);
}

void expect_gradients(const NetSpec& net, const std::vector<double>& actual,
                      const std::vector<double>& expected, double tolerance) {
  const double whole = norm(expected.data(), static_cast<int64_t>(expected.size()));
  for (const TensorInfo& info : parameter_table(net)) {
    const double* want = expected.data() + info.offset;
    // A tensor whose true gradient is zero (a bias before a batch norm) is measured by the whole.
    const double size = std::max(norm(want, info.count), 1e-2 * whole);
    EXPECT_LT(distance(actual.data() + info.offset, want, info.count), tolerance * size)
        << net.name << " " << info.name;
  }
}

void compare(const NetSpec& net, int rows, const Mix& mix = {}, const Tolerance& tolerance = {},
             float label_smoothing = 0.1f) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    if (!cpu_supports(precision)) continue;
    EngineOptions options = engine_options(rows, rows, 1, precision);
    options.label_smoothing = label_smoothing;
    const auto engine = make_cpu_engine(net, options);
    const std::vector<float> parameters = lively_parameters(net);
    engine->write(StateKind::parameters, parameters);
    TestBatch batch = make_batch(net, rows, 21);
    batch.weights[1] = 0.5f;
    ReferenceInput input = reference_input(batch, options);
    input.mix = mix;
    ReferenceStep step = reference_step(net, to_double(parameters), input);
    const double weight_sum = rows - 0.5;
    for (double& g : step.gradients) g /= weight_sum;
    const std::vector<double> gradients = engine_gradients(*engine, batch, mix);
    const bool fp32 = precision == Precision::fp32;
    const double least = fp32 ? tolerance.fp32_cosine : tolerance.bf16_cosine;
    if (least == 0) {
      expect_gradients(net, gradients, step.gradients, fp32 ? tolerance.fp32 : tolerance.bf16);
    } else {
      EXPECT_GT(cosine(gradients, step.gradients), least) << net.name;
    }
    const StepTotals totals = engine->totals();
    const double share = fp32 ? 1e-4 : 0.1;
    EXPECT_NEAR(totals.loss_sum, step.loss_sum, share * step.loss_sum) << net.name;
    EXPECT_FLOAT_EQ(totals.weight_sum, weight_sum);
  }
}

using Body = std::function<int(NetBuilder&, int)>;

// A stem, what is looked at, and a head with a bias and a scale.
NetSpec around(const std::string& name, const Body& body, int stem_channels = 8, int size = 9) {
  NetBuilder net(name, {size, size + 1}, 5);
  int x = net.conv("stem", 0, stem_channels, 3, 1, 1, true);
  x = body(net, x);
  net.linear("fc", net.plain(OpKind::global_avg_pool, x), true, 0.7f);
  return net.finish();
}

TEST(GradientTest, Convolutions) {
  compare(around("one", [](NetBuilder& n, int x) { return n.conv("c", x, 12, 1, 1, 0); }), 4);
  compare(around("three", [](NetBuilder& n, int x) { return n.conv("c", x, 12, 3, 1, 1); }), 4);
  compare(around("strided", [](NetBuilder& n, int x) { return n.conv("c", x, 12, 3, 2, 1); }), 4);
  compare(around("seven", [](NetBuilder& n, int x) { return n.conv("c", x, 6, 7, 2, 3, true); }),
          4);
  compare(around(
              "valid", [](NetBuilder& n, int x) { return n.conv("c", x, 7, 2, 1, 0); }, 5),
          4);
  compare(around(
              "skip", [](NetBuilder& n, int x) { return n.conv("c", x, 16, 1, 2, 0); }, 16),
          4);
}

TEST(GradientTest, Activations) {
  compare(around("relu", [](NetBuilder& n, int x) { return n.plain(OpKind::relu, x); }), 4);
  compare(around("gelu", [](NetBuilder& n, int x) { return n.plain(OpKind::gelu, x); }), 4);
}

TEST(GradientTest, BatchNorm) {
  const auto norm_only = [](NetBuilder& n, int x) {
    return n.conv("c", n.batch_norm("b", x, 1e-5f, 0.1f), 8, 3, 1, 1);
  };
  compare(around("norm", norm_only), 4);
  const auto with_relu = [](NetBuilder& n, int x) {
    return n.conv("c", n.plain(OpKind::relu, n.batch_norm("b", x, 1e-3f, 0.1f)), 8, 3, 1, 1);
  };
  compare(around("norm+relu", with_relu, 16), 4);
}

TEST(GradientTest, Pools) {
  compare(around("pool2", [](NetBuilder& n, int x) { return n.max_pool(x, 2, 2, 0); }), 4);
  compare(around("pool3", [](NetBuilder& n, int x) { return n.max_pool(x, 3, 2, 1); }), 4);
}

int norm_relu(NetBuilder& net, const std::string& name, int x) {
  return net.plain(OpKind::relu, net.batch_norm(name, x, 1e-5f, 0.1f));
}

TEST(GradientTest, AdditionsAndWhatFollowsThem) {
  const auto identity = [](NetBuilder& n, int x) {
    const int branch = n.batch_norm("b", n.conv("c", x, 8, 3, 1, 1), 1e-5f, 0.1f);
    return n.plain(OpKind::relu, n.add(branch, x));
  };
  compare(around("identity", identity), 4);
  const auto projection = [](NetBuilder& n, int x) {
    const int branch = n.batch_norm("b", n.conv("c", x, 12, 3, 2, 1), 1e-5f, 0.1f);
    const int shortcut = n.batch_norm("s", n.conv("d", x, 12, 1, 2, 0), 1e-5f, 0.1f);
    return n.plain(OpKind::relu, n.add(branch, shortcut));
  };
  compare(around("projection", projection), 4);
  const auto no_relu = [](NetBuilder& n, int x) {
    const int left = n.conv("l", x, 8, 3, 1, 1);
    return n.add(n.add(left, x), norm_relu(n, "b", n.conv("r", x, 8, 1, 1, 0)));
  };
  compare(around("no relu", no_relu), 4);
  const auto twice = [](NetBuilder& n, int x) {
    const int c = n.conv("c", x, 8, 3, 1, 1);
    return n.conv("d", n.add(c, c), 8, 1, 1, 0);
  };
  compare(around("twice", twice), 4);
  const auto after_relu = [](NetBuilder& n, int x) {  // the sum must not go over what ReLU looks at
    const int left = n.plain(OpKind::relu, n.conv("l", x, 8, 3, 1, 1));
    const int right = n.plain(OpKind::relu, n.conv("r", x, 8, 3, 1, 1));
    return n.add(left, right);
  };
  compare(around("after relu", after_relu), 4);
}

TEST(GradientTest, AValueWithFourReaders) {
  const auto body = [](NetBuilder& n, int x) {
    const int shared = norm_relu(n, "b", x);
    const int a = n.conv("a", shared, 8, 1, 1, 0);
    const int b = n.plain(OpKind::gelu, n.conv("c", shared, 8, 3, 1, 1));
    return n.plain(OpKind::relu, n.add(n.add(a, shared), n.add(b, shared)));
  };
  compare(around("four readers", body), 4);
}

TEST(GradientTest, PaddedChannels) {
  const auto body = [](NetBuilder& n, int x) {
    const int branch = n.batch_norm("b", n.conv("c", x, 16, 3, 2, 1), 1e-5f, 0.1f);
    return n.plain(OpKind::relu, n.add(branch, n.pad_channels(x, 16, 2)));
  };
  compare(around("pad", body), 4);
}

Tolerance whole_net(double bf16_cosine) { return {0, 0, 0.9999, bf16_cosine}; }

TEST(GradientTest, WholeModels) {
  compare(make_net("airnet", {32, 32}, 10, {{8, 16, 16}}), 4, {}, whole_net(0.95));
  compare(make_net("resnet20", {16, 16}, 10, {{8, 16, 32}}), 4, {}, whole_net(0.95));
  compare(make_net("resnet18", {33, 33}, 7, {{8, 8, 16, 16}}), 4, {}, whole_net(0.85));
  // With four rows and one pixel the last stages' batch norms are chaotic in bf16: any direction.
  compare(make_net("resnet50", {32, 32}, 7, {{4, 4, 8, 8}}), 4, {}, whole_net(-1));
}

TEST(GradientTest, LossesAndMixes) {
  const NetSpec net = around("mix", [](NetBuilder& n, int x) { return n.plain(OpKind::gelu, x); });
  compare(net, 4, {}, {}, 0.0f);
  compare(net, 4, {}, {}, 0.4f);
  compare(net, 4, {Mix::Kind::mixup, 0.3f, {}});
  compare(net, 5, {Mix::Kind::mixup, 0.8f, {}});
  compare(net, 4, {Mix::Kind::cutmix, 0.6f, {2, 3, 5, 4}});
}

TEST(GradientTest, RowsOfWeightZeroLeaveNoTrace) {
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
    gradients[i] = engine_gradients(*engine, i == 0 ? padded : other, {});
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  TestBatch small = padded;  // the two rows that count, alone
  small.images.resize(2 * image);
  small.labels.resize(2);
  small.weights.resize(2);
  const auto engine = make_cpu_engine(net, engine_options(2, 2));
  engine->write(StateKind::parameters, parameters);
  expect_gradients(net, engine_gradients(*engine, small, {}), gradients[0], 1e-6);
}

TEST(GradientTest, ShardsAreOneBatchWhereThereIsNoBatchNorm) {
  const NetSpec net = around("plain", [](NetBuilder& n, int x) {
    return n.plain(OpKind::relu, n.max_pool(n.conv("c", x, 8, 3, 1, 1), 2, 2, 0));
  });
  const std::vector<float> parameters = lively_parameters(net);
  const TestBatch batch = make_batch(net, 12, 5);
  std::vector<double> whole;
  for (const int rows_per_shard : {12, 6, 4, 3, 1}) {
    const auto engine = make_cpu_engine(net, engine_options(12, rows_per_shard, 2));
    engine->write(StateKind::parameters, parameters);
    const std::vector<double> gradients = engine_gradients(*engine, batch, {});
    if (whole.empty()) whole = gradients;
    expect_gradients(net, gradients, whole, 2e-6);
  }
}

// Running statistics are those of the union of all shards, as PyTorch keeps them.
TEST(GradientTest, RunningStatisticsOfTheUnionOfShards) {
  const NetSpec net =
      around("norm", [](NetBuilder& n, int x) { return n.batch_norm("b", x, 1e-5f, 0.3f); });
  const std::vector<float> parameters = lively_parameters(net);
  const EngineOptions options = engine_options(8, 2, 2);
  const auto engine = make_cpu_engine(net, options);
  EngineOptions joined = options;
  joined.rows_per_shard = 8;
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

TEST(GradientTest, EvaluationUsesRunningStatistics) {
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

TEST(GradientTest, ViewsShiftThenMirror) {
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

TEST(ReferenceNetTest, GradientsAreFiniteDifferences) {
  const auto everything = [](NetBuilder& n, int x) {
    x = n.plain(OpKind::gelu, n.max_pool(n.conv("c", x, 6, 3, 1, 1, true), 2, 2, 0));
    const int branch = n.batch_norm("b", n.conv("d", x, 8, 3, 2, 1), 1e-5f, 0.1f);
    return n.plain(OpKind::relu, n.add(branch, n.pad_channels(x, 8, 2)));
  };
  const NetSpec net = around("everything", everything);
  const EngineOptions options = engine_options(3, 3);
  const TestBatch batch = make_batch(net, 3, 2);
  ReferenceInput input = reference_input(batch, options);
  input.label_smoothing = 0.1f;
  input.mix = {Mix::Kind::mixup, 0.7f, {}};
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
