// Tests of the CPU engine against a double-precision reference, and of the reference against finite
// differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/gradient_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

// A ReLU or a maximum near its edge may flip, in fp32 once in a million. So single operations are
// compared tensor by tensor, and whole nets by the direction of all gradients together.
struct Tolerance {
  double fp32 = 2e-5, bf16 = 0.2;               // of a tensor's norm
  double fp32_cosine = 0.0, bf16_cosine = 0.0;  // if not 0, instead
};
constexpr double kOnlyFp32 = 2;  // as bf16_cosine: bf16 is not tested
Tolerance whole_net(double bf16_cosine) { return {0, 0, 0.9999, bf16_cosine}; }

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<int64_t>(a.size());
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i) product += a[i] * b[i];
  return product / norm(a.data(), count) / norm(b.data(), count);
}

void compare(const NetSpec& net, int rows, const Tolerance& tolerance = {},
             float label_smoothing = 0.1f, bool mixed = false, bool targets = false) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    if (!cpu_supports(precision)) continue;
    if (precision == Precision::bf16 && tolerance.bf16_cosine == kOnlyFp32) continue;
    EngineOptions options = engine_options(rows, rows, 1, precision);
    options.label_smoothing = label_smoothing;
    options.seed = 7;
    const auto engine = make_cpu_engine(net, options);
    const std::vector<float> parameters = lively_parameters(net);
    engine->write(StateKind::parameters, parameters);
    TestBatch batch = make_batch(net, rows, 21);
    batch.position = 12345;
    batch.weights[1] = 0.5f;
    if (mixed) batch = with_mixed_labels(batch, net, 31);
    if (targets) batch = with_targets(batch, net, 41);
    ReferenceInput input = reference_input(batch, options);
    ReferenceStep step = reference_step(net, to_double(parameters), input);
    const double weight_sum = rows - 0.5;
    for (double& g : step.gradients) g /= weight_sum;
    const std::vector<double> gradients = engine_gradients(*engine, batch);
    const bool fp32 = precision == Precision::fp32;
    const double least = fp32 ? tolerance.fp32_cosine : tolerance.bf16_cosine;
    if (least == 0) {
      expect_gradients(net, gradients, step.gradients, fp32 ? tolerance.fp32 : tolerance.bf16);
    } else {
      EXPECT_GT(cosine(gradients, step.gradients), least) << net.name;
    }
    const StepMetrics metrics = engine->step_metrics();
    const double share = fp32 ? 1e-4 : 0.1;
    EXPECT_NEAR(metrics.loss_sum, step.loss_sum, share * step.loss_sum) << net.name;
    EXPECT_FLOAT_EQ(metrics.weight_sum, weight_sum);
  }
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

// A kernel of oneDNN 2.6 is wrong in bf16: the engine refuses what would need it.
TEST(GradientTest, OddNumbersOfChannelsAreRightOrRefused) {
  const NetSpec net =
      around("odd", [](NetBuilder& n, int x) { return n.conv("c", x, 7, 1, 1, 0); });
  try {
    compare(net, 4);
  } catch (const std::invalid_argument& refusal) {
    EXPECT_THAT(refusal.what(), ::testing::HasSubstr("'odd', 'c': a 1x1 convolution with 7"));
  }
}

// Wide enough for Winograd, if the CPU has it: whole and partial tiles, padded blocks, a bias.
TEST(GradientTest, WideConvolutions) {
  const auto wide = [](int out, bool bias) {
    return [=](NetBuilder& n, int x) {
      return n.conv("d", n.conv("c", x, out, 3, 1, 1, bias), 32, 3, 1, 1);
    };
  };
  compare(around("wide 8", wide(48, false), 32, 8), 3);
  compare(around("wide 14", wide(32, true), 64, 14), 2);
  compare(around("wide 24", wide(40, false), 24, 11), 3);
  compare(around("wide 2", wide(32, false), 32, 2), 3);
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

TEST(GradientTest, RectangularConvolutions) {
  const auto wide = [](NetBuilder& n, int x) { return n.conv("c", x, 12, {7, 1}, 1, {3, 0}); };
  const auto high = [](NetBuilder& n, int x) { return n.conv("c", x, 16, {1, 3}, 2, {0, 1}); };
  const auto valid = [](NetBuilder& n, int x) { return n.conv("c", x, 16, {2, 5}, 1, {1, 2}); };
  compare(around("wide", wide), 4);
  compare(around("high", high), 4);
  compare(around("valid", valid, 16), 4);
}

TEST(GradientTest, FullyConnectedLayers) {
  const auto hidden = [](OpKind activation) {
    return [=](NetBuilder& n, int x) {
      x = n.plain(activation, n.fully_connected("f", n.max_pool(x, 3, 3, 0), 24));
      return n.plain(activation, n.fully_connected("g", x, 13));
    };
  };
  compare(around("relu layers", hidden(OpKind::relu), 16), 4);
  compare(around("tanh layers", hidden(OpKind::tanh), 16), 4);
  compare(around("gelu layers", hidden(OpKind::gelu), 8), 4);
}

TEST(GradientTest, ActivationsBehindAConvolution) {
  for (const OpKind kind : {OpKind::relu, OpKind::tanh, OpKind::sigmoid}) {
    const auto one = [=](NetBuilder& n, int x) {
      return n.plain(kind, n.conv("c", x, 12, 3, 1, 1, true));
    };
    // The convolution has a second reader, so that the activation stays a node of its own.
    const auto two = [=](NetBuilder& n, int x) {
      const int c = n.conv("c", x, 12, 3, 1, 1, true);
      return n.add(n.plain(kind, c), c);
    };
    const auto two_readers = [=](NetBuilder& n, int x) {
      const int a = n.plain(kind, n.conv("c", x, 8, 3, 1, 1, true));
      return n.add(n.conv("d", a, 8, 1, 1, 0), a);
    };
    compare(around("one", one), 4);
    compare(around("two", two), 4);
    compare(around("two readers", two_readers), 4);
  }
}

TEST(GradientTest, AveragePools) {
  const auto window = [](NetBuilder& n, int x) { return n.avg_pool(x, 3, 1, 1); };
  const auto half = [](NetBuilder& n, int x) { return n.avg_pool(x, 2, 2, 0); };
  const auto even = [](NetBuilder& n, int x) { return n.adaptive_avg_pool(x, {5, 3}); };
  const auto uneven = [](NetBuilder& n, int x) { return n.adaptive_avg_pool(x, {4, 4}); };
  const auto larger = [](NetBuilder& n, int x) {
    return n.conv("c", n.adaptive_avg_pool(x, {12, 14}), 8, 3, 2, 1);
  };
  for (const int channels : {8, 16, 20}) {
    compare(around("window", window, channels), 4);
    compare(around("half", half, channels), 4);
    compare(around("even", even, channels), 4);
    compare(around("uneven", uneven, channels), 4);
    compare(around("larger", larger, channels), 4);
  }
  compare(around("ceil", [](NetBuilder& n, int x) { return n.max_pool(x, 2, 2, 0, true); }), 4);
  compare(around("ceil 3", [](NetBuilder& n, int x) { return n.max_pool(x, 3, 2, 0, true); }), 4);
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
  const auto after_relu = [](NetBuilder& n, int x) {  // the sum must not overwrite what ReLU reads
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

// Bottlenecks as in ResNet-50, the first with a projection.
TEST(GradientTest, Bottlenecks) {
  const auto block = [](NetBuilder& n, const std::string& name, int x, bool project) {
    int y = norm_relu(n, name + "n1", n.conv(name + "c1", x, 4, 1, 1, 0));
    y = norm_relu(n, name + "n2", n.conv(name + "c2", y, 4, 3, project ? 2 : 1, 1));
    y = n.batch_norm(name + "n3", n.conv(name + "c3", y, 16, 1, 1, 0), 1e-5f, 0.1f);
    if (project) {
      x = n.batch_norm(name + "ns", n.conv(name + "cs", x, 16, 1, 2, 0), 1e-5f, 0.1f);
    }
    return n.plain(OpKind::relu, n.add(y, x));
  };
  const auto body = [&](NetBuilder& n, int x) {
    return block(n, "b", block(n, "a", x, true), false);
  };
  compare(around("bottlenecks", body), 4, whole_net(0.95));
}

TEST(GradientTest, WholeModels) {
  compare(make_net("airnet", {32, 32}, 10, {{8, 16, 16}}), 4, whole_net(0.95));
  compare(make_net("resnet20", {16, 16}, 10, {{8, 16, 32}}), 4, whole_net(0.95));
  compare(make_net("resnet18", {33, 33}, 7, {{8, 8, 16, 16}}), 4, whole_net(0.85));
  // Fifty layers with so few rows are chaotic in bf16: the test Bottlenecks covers its blocks.
  compare(make_net("resnet50", {32, 32}, 7, {{4, 4, 8, 8}}), 4, whole_net(kOnlyFp32));
}

TEST(GradientTest, Concatenations) {
  for (const int channels : {16, 12}) {  // whole blocks, and parts of blocks
    const auto parts = [=](NetBuilder& n, int x) {
      const int a = n.conv("a", x, channels, 1, 1, 0);
      const int b = n.conv("b", x, 2 * channels, 3, 1, 1);
      const int c = n.conv("c", x, 7, 3, 1, 1);
      return n.conv("d", n.concat({a, b, c}), 8, 3, 1, 1);
    };
    const auto growing = [=](NetBuilder& n, int x) {
      for (const char* name : {"1", "2", "3"}) {
        const int made = n.conv(name, norm_relu(n, std::string("n") + name, x), channels, 3, 1, 1);
        x = n.concat({x, made});
      }
      return x;
    };
    compare(around("parts", parts, 16), 4);
    compare(around("growing", growing, 16), 4, whole_net(0.99));
  }
  // One input twice.
  compare(around(
              "twice",
              [](NetBuilder& n, int x) {
                return n.concat({x, x});
              },
              16),
          4);
}

TEST(GradientTest, Dropout) {
  const auto pixels = [](NetBuilder& n, int x) {
    return n.conv("c", n.dropout(x, 0.4f), 8, 3, 1, 1);
  };
  const auto layers = [](NetBuilder& n, int x) {
    x = n.fully_connected("f", n.dropout(n.max_pool(x, 3, 3, 0), 0.5f), 40);
    return n.dropout(n.plain(OpKind::relu, x), 0.25f);
  };
  for (const int channels : {16, 12}) {
    compare(around("pixels", pixels, channels), 4);
    compare(around("layers", layers, channels), 4);
  }
}

TEST(GradientTest, AuxiliaryHeads) {
  const auto body = [](NetBuilder& n, int x) {
    const int aux = n.conv("aux", n.adaptive_avg_pool(x, {2, 2}), 8, 1, 1, 0);
    n.linear("aux.fc", n.adaptive_avg_pool(aux, {1, 1}), true, 1.0f, 0.3f);
    return n.conv("c", x, 8, 3, 1, 1);
  };
  compare(around("auxiliary", body), 4);
  compare(around("auxiliary mixed", body), 4, {}, 0.1f, true);
}

TEST(GradientTest, BinaryLoss) {
  for (const int outputs : {1, 5}) {
    NetBuilder builder("binary", {9, 10}, outputs);
    builder.loss(LossKind::binary);
    const int x = builder.plain(OpKind::sigmoid, builder.conv("c", 0, 8, 3, 1, 1, true));
    builder.linear("fc", builder.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
    const NetSpec net = builder.finish();
    compare(net, 4, {}, 0.0f);
    compare(net, 4, {}, 0.2f, true);
    compare(net, 4, {}, 0.0f, false, true);
    compare(net, 4, {}, 0.2f, false, true);
  }
}

// An output is right if it is on the side of its target.
TEST(GradientTest, TargetsThatAreAllRight) {
  NetBuilder builder("binary", {9, 10}, 3);
  builder.loss(LossKind::binary);
  builder.linear("fc", builder.adaptive_avg_pool(0, {1, 1}), true, 1.0f);
  const NetSpec net = builder.finish();
  const auto engine = started_engine(net, engine_options(4, 2));
  TestBatch batch = with_targets(make_batch(net, 4, 21), net, 41);
  std::vector<float> logits(12);
  engine->forward(batch.rows(), {}, false, logits);
  for (size_t i = 0; i < 12; ++i) batch.targets[i] = logits[i] > 0 ? 0.5f : 0.49f;
  batch.targets[5] = 0.99f - batch.targets[5];  // of the second row
  batch.targets[11] = 0.99f - batch.targets[11];
  batch.weights[3] = 0;  // a row that does not count may have any values
  batch.targets[10] = 7;
  train_step(*engine, batch);
  const StepMetrics metrics = engine->step_metrics();
  EXPECT_EQ(metrics.weight_sum, 3);
  EXPECT_FLOAT_EQ(static_cast<float>(metrics.top1), 3 - 1.0f / 3);
  EXPECT_EQ(metrics.top5, 2);
}

TEST(GradientTest, TargetsAreRefusedThatNoNetLearns) {
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

TEST(GradientTest, NewModels) {
  const auto small = [](const char* name, int size, const std::vector<int>& widths) {
    return make_net(name, {size, size}, 7, {widths});
  };
  compare(small("alexnet", 64, {16, 24, 16, 16, 16, 32}), 4, whole_net(0.99));
  compare(small("vgg16", 32, {8, 16, 16, 16, 16, 32}), 4, whole_net(0.99));
  compare(small("densenet40", 16, {16, 4}), 4, whole_net(0.95));
  compare(make_net("mlp41m", {100, 80}, 2, {{40, 30, 20, 10}}), 4);
}

TEST(GradientTest, LossesAndMixes) {
  const NetSpec net = around("mix", [](NetBuilder& n, int x) { return n.plain(OpKind::gelu, x); });
  compare(net, 4, {}, 0.0f);
  compare(net, 4, {}, 0.4f);
  compare(net, 4, {}, 0.0f, true);
  compare(net, 5, {}, 0.3f, true);
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
