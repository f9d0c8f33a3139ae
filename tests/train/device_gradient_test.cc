// Tests of the device engine's execution plan and arithmetic against the double-precision
// reference.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/device_fixture.h"
#include "tests/train/gradient_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

struct NetCase {
  NetSpec net;
  int rows = 4;
  float label_smoothing = 0.1f;
  bool mixed = false, targets = false;
};

struct CaseGradients {
  std::vector<double> engine, reference;
};

CaseGradients gradients_of_case(const NetCase& c, Precision precision) {
  EngineOptions options = engine_options(c.rows, c.rows, 1, precision);
  options.label_smoothing = c.label_smoothing;
  const auto engine = make_device_engine(c.net, options);
  const std::vector<float> parameters = lively_parameters(c.net);
  engine->write(StateKind::parameters, parameters);
  TestBatch batch = make_batch(c.net, c.rows, 21);
  batch.weights[1] = 0.5f;
  if (c.mixed) batch = with_mixed_labels(batch, c.net, 31);
  if (c.targets) batch = with_targets(batch, c.net, 41);
  ReferenceInput input = reference_input(batch, options);
  ReferenceStep step = reference_step(c.net, to_double(parameters), input);
  const double weight_sum = c.rows - 0.5;
  for (double& g : step.gradients) g /= weight_sum;
  device_step(*engine, batch, {1e-6f, 0.0f, 0.0f, false});
  const StepMetrics metrics = engine->step_metrics();
  EXPECT_TRUE(metrics.finite) << c.net.name;
  const double share = precision == Precision::fp32 ? 1e-4 : 0.1;
  EXPECT_NEAR(metrics.loss_sum, step.loss_sum, share * step.loss_sum) << c.net.name;
  EXPECT_FLOAT_EQ(metrics.weight_sum, weight_sum);
  return {to_double(read_state(*engine, StateKind::momenta)), step.gradients};
}

void compare_case(const NetCase& c) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const CaseGradients g = gradients_of_case(c, precision);
    expect_gradients(c.net, g.engine, g.reference, precision == Precision::fp32 ? 2e-5 : 0.2);
  }
}

double cosine_of_case(const CaseGradients& g) {
  const auto count = static_cast<int64_t>(g.engine.size());
  double product = 0;
  for (size_t i = 0; i < g.engine.size(); ++i) product += g.engine[i] * g.reference[i];
  return product / norm(g.engine.data(), count) / norm(g.reference.data(), count);
}

TEST(DeviceGradientTest, Convolutions) {
  compare_case({around("one", [](NetBuilder& n, int x) { return n.conv("c", x, 12, 1, 1, 0); })});
  compare_case(
      {around("strided", [](NetBuilder& n, int x) { return n.conv("c", x, 12, 3, 2, 1); })});
  compare_case(
      {around("seven", [](NetBuilder& n, int x) { return n.conv("c", x, 6, 7, 2, 3, true); })});
  compare_case({around(
      "valid", [](NetBuilder& n, int x) { return n.conv("c", x, 7, 2, 1, 0); }, 5)});
}

TEST(DeviceGradientTest, ActivationsOfTheirOwn) {
  compare_case({around("relu", [](NetBuilder& n, int x) { return n.plain(OpKind::relu, x); })});
  compare_case({around("gelu", [](NetBuilder& n, int x) { return n.plain(OpKind::gelu, x); })});
}

TEST(DeviceGradientTest, ActivationsBehindAConvolution) {
  for (const OpKind kind : {OpKind::relu, OpKind::tanh, OpKind::sigmoid}) {
    compare_case({around("one", [=](NetBuilder& n, int x) {
      return n.plain(kind, n.conv("c", x, 12, 3, 1, 1, true));
    })});
    // The convolution has a second reader, so that the activation stays a node of its own.
    compare_case({around("two", [=](NetBuilder& n, int x) {
      const int c = n.conv("c", x, 12, 3, 1, 1);
      return n.add(n.plain(kind, c), c);
    })});
    compare_case({around("two readers", [=](NetBuilder& n, int x) {
      const int a = n.plain(kind, n.conv("c", x, 8, 3, 1, 1));
      return n.add(n.conv("d", a, 8, 1, 1, 0), a);
    })});
  }
}

TEST(DeviceGradientTest, RectanglesAndFullyConnectedLayers) {
  compare_case({around("rectangles", [](NetBuilder& n, int x) {
    x = n.conv("wide", x, 12, {7, 1}, 1, {3, 0});
    x = n.conv("high", x, 8, {1, 3}, 2, {0, 1});
    return n.conv("valid", x, 7, {2, 5}, 1, {1, 2});
  })});
  compare_case({around("layers", [](NetBuilder& n, int x) {
    x = n.plain(OpKind::tanh, n.fully_connected("f", n.max_pool(x, 3, 3, 0), 24));
    return n.plain(OpKind::gelu, n.fully_connected("g", x, 13));
  })});
}

TEST(DeviceGradientTest, BatchNormWithAndWithoutActivation) {
  for (const OpKind kind : {OpKind::batch_norm, OpKind::relu, OpKind::gelu}) {
    compare_case({around("norm", [kind](NetBuilder& n, int x) {
      x = n.batch_norm("b", x, 1e-3f, 0.1f);
      if (kind != OpKind::batch_norm) x = n.plain(kind, x);
      return n.conv("c", x, 8, 3, 1, 1);
    })});
  }
}

TEST(DeviceGradientTest, Pools) {
  compare_case({around("pool2", [](NetBuilder& n, int x) { return n.max_pool(x, 2, 2, 0); })});
  compare_case({around("pool3", [](NetBuilder& n, int x) { return n.max_pool(x, 3, 2, 1); })});
  compare_case({around("ceil", [](NetBuilder& n, int x) { return n.max_pool(x, 2, 2, 0, true); })});
  compare_case(
      {around("ceil 3", [](NetBuilder& n, int x) { return n.max_pool(x, 3, 2, 0, true); })});
}

TEST(DeviceGradientTest, AveragePools) {
  for (const int channels : {8, 7}) {
    const auto case_of = [=](const char* name, const Body& body) {
      compare_case({around(name, body, channels)});
    };
    case_of("window", [](NetBuilder& n, int x) { return n.avg_pool(x, 3, 1, 1); });
    case_of("half", [](NetBuilder& n, int x) { return n.avg_pool(x, 2, 2, 0); });
    case_of("even", [](NetBuilder& n, int x) { return n.adaptive_avg_pool(x, {5, 3}); });
    case_of("uneven", [](NetBuilder& n, int x) { return n.adaptive_avg_pool(x, {4, 4}); });
    case_of("larger", [](NetBuilder& n, int x) {
      return n.conv("c", n.adaptive_avg_pool(x, {12, 14}), 8, 3, 2, 1);
    });
  }
}

TEST(DeviceGradientTest, Concatenations) {
  for (const int channels : {8, 5}) {  // whole groups of a kernel's width, and parts of groups
    compare_case({around("parts", [=](NetBuilder& n, int x) {
      const int a = n.conv("a", x, channels, 1, 1, 0), b = n.conv("b", x, 2 * channels, 3, 1, 1);
      return n.conv("d", n.concat({a, b, n.conv("c", x, 3, 1, 1, 0)}), 8, 3, 1, 1);
    })});
    compare_case({around("growing", [=](NetBuilder& n, int x) {
      for (const char* name : {"1", "2", "3"}) {
        const int norm = n.batch_norm(std::string("n") + name, x, 1e-5f, 0.1f);
        x = n.concat({x, n.conv(name, n.plain(OpKind::relu, norm), channels, 3, 1, 1)});
      }
      return x;
    })});
  }
  compare_case({around("twice", [](NetBuilder& n, int x) { return n.concat({x, x}); })});
}

TEST(DeviceGradientTest, Dropout) {
  for (const int channels : {8, 7}) {
    compare_case({around(
        "pixels", [](NetBuilder& n, int x) { return n.conv("c", n.dropout(x, 0.4f), 8, 3, 1, 1); },
        channels)});
    compare_case({around(
        "layers",
        [](NetBuilder& n, int x) {
          x = n.fully_connected("f", n.dropout(n.max_pool(x, 3, 3, 0), 0.5f), 40);
          return n.dropout(n.plain(OpKind::relu, x), 0.25f);
        },
        channels)});
  }
}

TEST(DeviceGradientTest, AuxiliaryHeads) {
  const NetSpec net = around("auxiliary", [](NetBuilder& n, int x) {
    const int aux = n.conv("aux", n.adaptive_avg_pool(x, {2, 2}), 8, 1, 1, 0);
    n.linear("aux.fc", n.adaptive_avg_pool(aux, {1, 1}), true, 1.0f, 0.3f);
    return n.conv("c", x, 8, 3, 1, 1);
  });
  compare_case({net});
  compare_case({net, 4, 0.1f, true});
}

TEST(DeviceGradientTest, BinaryLossAndGrayInput) {
  for (const int outputs : {1, 5}) {
    NetBuilder builder("binary", {9, 10}, outputs);
    builder.loss(LossKind::binary);
    builder.gray_input();
    const int x = builder.plain(OpKind::sigmoid, builder.conv("c", 0, 8, 3, 1, 1, true));
    builder.linear("fc", builder.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
    const NetSpec net = builder.finish();
    compare_case({net, 4, 0.0f});
    compare_case({net, 4, 0.2f, true});
    compare_case({net, 4, 0.0f, false, true});
    compare_case({net, 4, 0.2f, false, true});
  }
}

int branch_of(NetBuilder& n, int x, int channels, int stride) {
  return n.batch_norm("b", n.conv("c", x, channels, 3, stride, 1), 1e-5f, 0.1f);
}

TEST(DeviceGradientTest, Residuals) {
  compare_case({around("identity", [](NetBuilder& n, int x) {
    return n.plain(OpKind::relu, n.add(branch_of(n, x, 8, 1), x));
  })});
  compare_case({around("identity, other side", [](NetBuilder& n, int x) {
    return n.plain(OpKind::relu, n.add(x, branch_of(n, x, 8, 1)));
  })});
  compare_case({around("no relu", [](NetBuilder& n, int x) {
    const int sum = n.add(branch_of(n, x, 8, 1), x);
    return n.add(sum, n.plain(OpKind::relu, n.conv("r", sum, 8, 1, 1, 0)));
  })});
  compare_case({around("projection", [](NetBuilder& n, int x) {
    const int shortcut = n.batch_norm("s", n.conv("d", x, 12, 1, 2, 0), 1e-5f, 0.1f);
    return n.plain(OpKind::relu, n.add(branch_of(n, x, 12, 2), shortcut));
  })});
  compare_case({around("gelu of a sum", [](NetBuilder& n, int x) {
    return n.plain(OpKind::gelu, n.add(branch_of(n, x, 8, 1), x));
  })});
  compare_case({around("padded", [](NetBuilder& n, int x) {
    return n.plain(OpKind::relu, n.add(branch_of(n, x, 16, 2), n.pad_channels(x, 16, 2)));
  })});
}

TEST(DeviceGradientTest, SumsWithoutBatchNorm) {
  compare_case({around("twice", [](NetBuilder& n, int x) {
    const int c = n.conv("c", x, 8, 3, 1, 1);
    return n.conv("d", n.add(c, c), 8, 1, 1, 0);
  })});
  compare_case({around("after relu", [](NetBuilder& n, int x) {
    const int left = n.plain(OpKind::relu, n.conv("l", x, 8, 3, 1, 1));
    const int right = n.plain(OpKind::relu, n.conv("r", x, 8, 3, 1, 1));
    return n.add(left, right);
  })});
  compare_case({around("four readers", [](NetBuilder& n, int x) {
    const int shared = n.plain(OpKind::relu, n.batch_norm("b", x, 1e-5f, 0.1f));
    const int a = n.conv("a", shared, 8, 1, 1, 0);
    const int b = n.plain(OpKind::gelu, n.conv("c", shared, 8, 3, 1, 1));
    return n.plain(OpKind::relu, n.add(n.add(a, shared), n.add(b, shared)));
  })});
}

// An addition that is not fused passes the same gradient to both inputs: the one that uses it first
// must not overwrite it.
TEST(DeviceGradientTest, AGradientThatTwoBlocksShare) {
  compare_case({around("shared", [](NetBuilder& n, int x) {
    const int plain = n.plain(OpKind::relu, n.conv("p", x, 8, 3, 1, 1));
    const int block = n.plain(OpKind::relu, n.add(branch_of(n, x, 8, 1), x));
    return n.add(plain, block);
  })});
  compare_case({around("shared by norms", [](NetBuilder& n, int x) {
    const int left = n.plain(OpKind::relu, n.batch_norm("l", x, 1e-5f, 0.1f));
    const int right = n.plain(OpKind::relu, branch_of(n, x, 8, 1));
    return n.add(left, right);
  })});
}

TEST(DeviceGradientTest, TwoReadersOfAResidualBlock) {  // their gradients meet in the batch norm
  compare_case({around("chain", [](NetBuilder& n, int x) {
    for (const char* name : {"p", "q", "r"}) {
      const std::string prefix = name;
      const int c = n.conv(prefix + ".c", x, 8, 3, 1, 1);
      x = n.plain(OpKind::relu, n.add(n.batch_norm(prefix + ".b", c, 1e-5f, 0.1f), x));
    }
    return x;
  })});
}

TEST(DeviceGradientTest, LossesAndMixes) {
  const NetSpec net = around("mix", [](NetBuilder& n, int x) { return n.plain(OpKind::gelu, x); });
  compare_case({net, 4, 0.0f});
  compare_case({net, 4, 0.4f});
  compare_case({net, 4, 0.0f, true});
  compare_case({net, 5, 0.3f, true});
}

TEST(DeviceGradientTest, WholeModels) {
  EXPECT_GT(cosine_of_case(gradients_of_case({make_net("airnet", {32, 32}, 10, {{8, 16, 16}})},
                                             Precision::fp32)),
            0.9999);
  EXPECT_GT(cosine_of_case(gradients_of_case({make_net("airnet", {32, 32}, 10, {{8, 16, 16}})},
                                             Precision::bf16)),
            0.95);
  EXPECT_GT(cosine_of_case(gradients_of_case({make_net("resnet20", {16, 16}, 10, {{8, 16, 32}})},
                                             Precision::fp32)),
            0.9999);
  EXPECT_GT(cosine_of_case(gradients_of_case({make_net("resnet18", {33, 33}, 7, {{8, 8, 16, 16}})},
                                             Precision::fp32)),
            0.9999);
  EXPECT_GT(cosine_of_case(gradients_of_case({make_net("resnet50", {32, 32}, 7, {{4, 4, 8, 8}})},
                                             Precision::fp32)),
            0.9999);
  const auto small = [](const char* name, Size size, const std::vector<int>& widths) {
    return NetCase{make_net(name, size, 7, {widths})};
  };
  for (const NetCase& c :
       {small("alexnet", {64, 64}, {16, 24, 16, 16, 16, 32}),
        small("vgg16", {32, 32}, {8, 16, 16, 16, 16, 32}), small("densenet40", {16, 16}, {16, 4}),
        NetCase{make_net("mlp41m", {100, 80}, 2, {{40, 30, 20, 10}})}}) {
    EXPECT_GT(cosine_of_case(gradients_of_case(c, Precision::fp32)), 0.9999) << c.net.name;
  }
}

}  // namespace
}  // namespace stoker
