// Every engine's gradients against a double-precision reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/gradient_fixture.h"
#include "tests/train/tested_engine.h"

namespace stoker {
namespace {

class GradientTest : public OnTestedEngine {};

// A ReLU or a maximum near its edge may flip, in fp32 once in a million. So single operations are
// compared tensor by tensor, and whole nets by the direction of all gradients together.
struct NetTolerance {
  double fp32 = 2e-5, bf16 = 0.2;               // of a tensor's norm
  double fp32_cosine = 0.0, bf16_cosine = 0.0;  // if not 0, instead
};
constexpr double kOnlyFp32 = 2;  // as bf16_cosine: bf16 is not tested
NetTolerance whole_net(double bf16_cosine) { return {0, 0, 0.9999, bf16_cosine}; }

double cosine_of(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<int64_t>(a.size());
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i) product += a[i] * b[i];
  return product / norm(a.data(), count) / norm(b.data(), count);
}

struct ComparedLoss {
  float label_smoothing = 0.1f;
  bool mixed = false, targets = false;
};

void compare_gradients(const NetSpec& net, int rows = 4, const NetTolerance& tolerance = {},
                       const ComparedLoss& loss = {}) {
  for (const Precision precision : tested_engine().precisions) {
    if (precision == Precision::bf16 && tolerance.bf16_cosine == kOnlyFp32) continue;
    EngineOptions options = engine_options(rows, rows, 1, precision);
    options.label_smoothing = loss.label_smoothing;
    options.seed = 7;
    const auto engine = make_engine(net, options);
    const std::vector<float> parameters = lively_parameters(net);
    engine->write(StateKind::parameters, parameters);
    TestBatch batch = make_batch(net, rows, 21);
    batch.position = 12345;
    batch.weights[1] = 0.5f;
    if (loss.mixed) batch = with_mixed_labels(batch, net, 31);
    if (loss.targets) batch = with_targets(batch, net, 41);
    ReferenceInput input = reference_input(batch, options);
    ReferenceStep step = reference_step(net, to_double(parameters), input);
    const double weight_sum = rows - 0.5;
    for (double& g : step.gradients) g /= weight_sum;
    // The gradients as the optimiser gets them: the momentum after one step from zero with momentum
    // 0.
    queue_step(*engine, batch, {1e-6f, 0.0f, 0.0f, false});
    const std::vector<double> gradients = to_double(read_state(*engine, StateKind::momenta));
    const bool fp32 = precision == Precision::fp32;
    const double least = fp32 ? tolerance.fp32_cosine : tolerance.bf16_cosine;
    if (least == 0) {
      expect_gradients(net, gradients, step.gradients, fp32 ? tolerance.fp32 : tolerance.bf16);
    } else {
      EXPECT_GT(cosine_of(gradients, step.gradients), least) << net.name;
    }
    const StepMetrics metrics = engine->step_metrics();
    EXPECT_TRUE(metrics.finite) << net.name;
    const double share = fp32 ? 1e-4 : 0.1;
    EXPECT_NEAR(metrics.loss_sum, step.loss_sum, share * step.loss_sum) << net.name;
    EXPECT_FLOAT_EQ(metrics.weight_sum, weight_sum);
  }
}

void compare_around(const std::string& name, const Body& body, int stem_channels = 8,
                    int size = 9) {
  compare_gradients(around(name, body, stem_channels, size));
}

int conv(NetBuilder& n, int x, int channels, int kernel, int stride, int padding) {
  return n.conv("c", x, channels, kernel, stride, padding);
}

TEST_F(GradientTest, Convolutions) {
  compare_around("one", [](auto& n, int x) { return conv(n, x, 12, 1, 1, 0); });
  compare_around("three", [](auto& n, int x) { return conv(n, x, 12, 3, 1, 1); });
  compare_around("strided", [](auto& n, int x) { return conv(n, x, 12, 3, 2, 1); });
  compare_around("seven", [](auto& n, int x) { return n.conv("c", x, 6, 7, 2, 3, true); });
  compare_around(
      "valid", [](auto& n, int x) { return conv(n, x, 7, 2, 1, 0); }, 5);
  compare_around(
      "skip", [](auto& n, int x) { return conv(n, x, 16, 1, 2, 0); }, 16);
}

void expect_right_or_refused(const NetSpec& net) {
  try {
    compare_gradients(net);
  } catch (const std::invalid_argument& refusal) {
    EXPECT_TRUE(tested_engine().refuses_odd_pixel_convolutions);
    EXPECT_THAT(refusal.what(), ::testing::ContainsRegex(
                                    "'" + net.name + "', '[ac]': a 1x1 convolution with [357]"));
  }
}

TEST_F(GradientTest, OddNumbersOfChannelsAreRightOrRefused) {
  expect_right_or_refused(around("odd", [](auto& n, int x) { return conv(n, x, 7, 1, 1, 0); }));
  for (const int channels : {8, 5}) {
    expect_right_or_refused(around("odd parts", [=](NetBuilder& n, int x) {
      const int a = n.conv("a", x, channels, 1, 1, 0), b = n.conv("b", x, 2 * channels, 3, 1, 1);
      return n.conv("d", n.concat({a, b, conv(n, x, 3, 1, 1, 0)}), 8, 3, 1, 1);
    }));
  }
}

// Wide enough for Winograd, where there is one: whole and partial tiles, padded blocks, a bias.
TEST_F(GradientTest, WideConvolutions) {
  const auto wide = [](int size, int stem, int out, bool bias, int rows) {
    const auto body = [=](NetBuilder& n, int x) {
      return n.conv("d", n.conv("c", x, out, 3, 1, 1, bias), 32, 3, 1, 1);
    };
    compare_gradients(around("wide " + std::to_string(size), body, stem, size), rows);
  };
  wide(8, 32, 48, false, 3);
  wide(14, 64, 32, true, 2);
  wide(11, 24, 40, false, 3);
  wide(2, 32, 32, false, 3);
}

TEST_F(GradientTest, Activations) {
  compare_around("relu", [](auto& n, int x) { return n.plain(OpKind::relu, x); });
  compare_around("gelu", [](auto& n, int x) { return n.plain(OpKind::gelu, x); });
}

TEST_F(GradientTest, BatchNormWithAndWithoutActivation) {
  for (const int channels : {8, 16}) {
    for (const OpKind kind : {OpKind::batch_norm, OpKind::relu, OpKind::gelu}) {
      const float eps = kind == OpKind::batch_norm ? 1e-5f : 1e-3f;
      const auto body = [=](NetBuilder& n, int x) {
        x = n.batch_norm("b", x, eps, 0.1f);
        if (kind != OpKind::batch_norm) x = n.plain(kind, x);
        return conv(n, x, 8, 3, 1, 1);
      };
      compare_around("norm", body, channels);
    }
  }
}

TEST_F(GradientTest, Pools) {
  compare_around("pool2", [](auto& n, int x) { return n.max_pool(x, 2, 2, 0); });
  compare_around("pool3", [](auto& n, int x) { return n.max_pool(x, 3, 2, 1); });
  compare_around("ceil", [](auto& n, int x) { return n.max_pool(x, 2, 2, 0, true); });
  compare_around("ceil 3", [](auto& n, int x) { return n.max_pool(x, 3, 2, 0, true); });
}

TEST_F(GradientTest, RectangularConvolutions) {
  const auto wide = [](NetBuilder& n, int x) { return n.conv("c", x, 12, {7, 1}, 1, {3, 0}); };
  const auto high = [](NetBuilder& n, int x) { return n.conv("d", x, 16, {1, 3}, 2, {0, 1}); };
  const auto valid = [](NetBuilder& n, int x) { return n.conv("e", x, 7, {2, 5}, 1, {1, 2}); };
  compare_around("wide", wide);
  compare_around("high", high);
  compare_around(
      "valid",
      [](auto& n, int x) {
        return n.conv("c", x, 16, {2, 5}, 1, {1, 2});
      },
      16);
  compare_around("all", [=](auto& n, int x) { return valid(n, high(n, wide(n, x))); });
}

TEST_F(GradientTest, FullyConnectedLayers) {
  const auto hidden = [](OpKind first, OpKind second) {
    return [=](NetBuilder& n, int x) {
      x = n.plain(first, n.fully_connected("f", n.max_pool(x, 3, 3, 0), 24));
      return n.plain(second, n.fully_connected("g", x, 13));
    };
  };
  compare_around("relu layers", hidden(OpKind::relu, OpKind::relu), 16);
  compare_around("tanh layers", hidden(OpKind::tanh, OpKind::tanh), 16);
  compare_around("gelu layers", hidden(OpKind::gelu, OpKind::gelu));
  compare_around("both", hidden(OpKind::tanh, OpKind::gelu));
}

TEST_F(GradientTest, ActivationsBehindAConvolution) {
  for (const OpKind kind : {OpKind::relu, OpKind::tanh, OpKind::sigmoid}) {
    compare_around("one", [=](NetBuilder& n, int x) {
      return n.plain(kind, n.conv("c", x, 12, 3, 1, 1, true));
    });
    for (const bool bias : {false, true}) {
      // The convolution has a second reader, so that the activation stays a node of its own.
      compare_around("two", [=](NetBuilder& n, int x) {
        const int c = n.conv("c", x, 12, 3, 1, 1, bias);
        return n.add(n.plain(kind, c), c);
      });
      compare_around("two readers", [=](NetBuilder& n, int x) {
        const int a = n.plain(kind, n.conv("c", x, 8, 3, 1, 1, bias));
        return n.add(n.conv("d", a, 8, 1, 1, 0), a);
      });
    }
  }
}

TEST_F(GradientTest, AveragePools) {
  const std::pair<const char*, Body> bodies[] = {
      {"window", [](auto& n, int x) { return n.avg_pool(x, 3, 1, 1); }},
      {"half", [](auto& n, int x) { return n.avg_pool(x, 2, 2, 0); }},
      {"even",
       [](auto& n, int x) {
         return n.adaptive_avg_pool(x, {5, 3});
       }},
      {"uneven",
       [](auto& n, int x) {
         return n.adaptive_avg_pool(x, {4, 4});
       }},
      {"larger", [](auto& n, int x) {
         return conv(n, n.adaptive_avg_pool(x, {12, 14}), 8, 3, 2, 1);
       }}};
  for (const int channels : tested_engine().channels) {
    for (const auto& [name, body] : bodies) compare_around(name, body, channels);
  }
}

int branch(NetBuilder& n, int x, int channels, int stride = 1) {
  return n.batch_norm("b", conv(n, x, channels, 3, stride, 1), 1e-5f, 0.1f);
}
int norm_relu(NetBuilder& net, const std::string& name, int x) {
  return net.plain(OpKind::relu, net.batch_norm(name, x, 1e-5f, 0.1f));
}
int shortcut(NetBuilder& n, int x) {
  return n.batch_norm("s", n.conv("d", x, 12, 1, 2, 0), 1e-5f, 0.1f);
}

TEST_F(GradientTest, AdditionsAndWhatFollowsThem) {
  for (const OpKind kind : {OpKind::relu, OpKind::gelu}) {
    compare_around("identity",
                   [=](auto& n, int x) { return n.plain(kind, n.add(branch(n, x, 8), x)); });
    compare_around("identity, other side",
                   [=](auto& n, int x) { return n.plain(kind, n.add(x, branch(n, x, 8))); });
  }
  compare_around("projection", [](NetBuilder& n, int x) {
    return n.plain(OpKind::relu, n.add(branch(n, x, 12, 2), shortcut(n, x)));
  });
  compare_around("projection, the shortcut first", [](NetBuilder& n, int x) {
    const int short_one = shortcut(n, x);
    return n.plain(OpKind::relu, n.add(branch(n, x, 12, 2), short_one));
  });
  compare_around("no relu", [](NetBuilder& n, int x) {
    const int left = n.conv("l", x, 8, 3, 1, 1);
    return n.add(n.add(left, x), norm_relu(n, "b", n.conv("r", x, 8, 1, 1, 0)));
  });
  compare_around("no relu at once", [](NetBuilder& n, int x) {
    const int sum = n.add(branch(n, x, 8), x);
    return n.add(sum, n.plain(OpKind::relu, n.conv("r", sum, 8, 1, 1, 0)));
  });
  compare_around("twice", [](NetBuilder& n, int x) {
    const int c = conv(n, x, 8, 3, 1, 1);
    return n.conv("d", n.add(c, c), 8, 1, 1, 0);
  });
  // The sum must not overwrite what ReLU reads.
  compare_around("after relu", [](NetBuilder& n, int x) {
    const int left = n.plain(OpKind::relu, n.conv("l", x, 8, 3, 1, 1));
    return n.add(left, n.plain(OpKind::relu, n.conv("r", x, 8, 3, 1, 1)));
  });
}

TEST_F(GradientTest, AValueWithFourReaders) {
  compare_around("four readers", [](NetBuilder& n, int x) {
    const int shared = norm_relu(n, "b", x);
    const int a = n.conv("a", shared, 8, 1, 1, 0);
    const int b = n.plain(OpKind::gelu, conv(n, shared, 8, 3, 1, 1));
    return n.plain(OpKind::relu, n.add(n.add(a, shared), n.add(b, shared)));
  });
}

// An addition that is not fused passes the same gradient to both inputs: the one that uses it first
// must not overwrite it.
TEST_F(GradientTest, AGradientThatTwoBlocksShare) {
  compare_around("shared", [](NetBuilder& n, int x) {
    const int plain = n.plain(OpKind::relu, n.conv("p", x, 8, 3, 1, 1));
    return n.add(plain, n.plain(OpKind::relu, n.add(branch(n, x, 8), x)));
  });
  compare_around("shared by norms", [](NetBuilder& n, int x) {
    const int left = norm_relu(n, "l", x);
    return n.add(left, n.plain(OpKind::relu, branch(n, x, 8)));
  });
  compare_around("two that are shared", [](NetBuilder& n, int x) {
    const int p = n.conv("p", x, 8, 3, 1, 1), q = n.conv("q", x, 8, 1, 1, 0);
    const int both = n.conv("r", x, 8, 3, 1, 1);
    return n.add(n.conv("s", n.add(both, p), 8, 1, 1, 0), n.add(both, q));
  });
}

TEST_F(GradientTest, TwoReadersOfAResidualBlock) {  // their gradients meet in the batch norm
  compare_around("chain", [](NetBuilder& n, int x) {
    for (const char* name : {"p", "q", "r"}) {
      const std::string prefix = name;
      const int c = n.conv(prefix + ".c", x, 8, 3, 1, 1);
      x = n.plain(OpKind::relu, n.add(n.batch_norm(prefix + ".b", c, 1e-5f, 0.1f), x));
    }
    return x;
  });
}

TEST_F(GradientTest, PaddedChannels) {
  compare_around("pad", [](NetBuilder& n, int x) {
    return n.plain(OpKind::relu, n.add(branch(n, x, 16, 2), n.pad_channels(x, 16, 2)));
  });
}

// Bottlenecks as in ResNet-50, the first with a projection.
TEST_F(GradientTest, Bottlenecks) {
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
  compare_gradients(around("bottlenecks", body), 4, whole_net(0.95));
}

void compare_model(const char* name, Size size, int classes, const std::vector<int>& widths,
                   double bf16_cosine) {
  const auto& in_bf16 = tested_engine().bf16_models;
  const bool has_bf16 = std::ranges::find(in_bf16, name) != in_bf16.end();
  compare_gradients(make_net(name, size, classes, {widths}), 4,
                    whole_net(has_bf16 ? bf16_cosine : kOnlyFp32));
}

TEST_F(GradientTest, WholeModels) {
  compare_model("airnet", {32, 32}, 10, {8, 16, 16}, 0.95);
  compare_model("resnet20", {16, 16}, 10, {8, 16, 32}, 0.95);
  compare_model("resnet18", {33, 33}, 7, {8, 8, 16, 16}, 0.85);
  // Fifty layers with so few rows are chaotic in bf16: the test Bottlenecks covers its blocks.
  compare_model("resnet50", {32, 32}, 7, {4, 4, 8, 8}, kOnlyFp32);
}

TEST_F(GradientTest, NewModels) {
  compare_model("alexnet", {64, 64}, 7, {16, 24, 16, 16, 16, 32}, 0.99);
  compare_model("vgg16", {32, 32}, 7, {8, 16, 16, 16, 16, 32}, 0.99);
  compare_model("densenet40", {16, 16}, 7, {16, 4}, 0.95);
  compare_gradients(make_net("mlp41m", {100, 80}, 2, {{40, 30, 20, 10}}));
}

TEST_F(GradientTest, Concatenations) {
  for (const int channels : tested_engine().channels) {
    compare_around(
        "parts",
        [=](NetBuilder& n, int x) {
          const int a = n.conv("a", x, channels, 1, 1, 0),
                    b = n.conv("b", x, 2 * channels, 3, 1, 1);
          return n.conv("d", n.concat({a, b, conv(n, x, 7, 3, 1, 1)}), 8, 3, 1, 1);
        },
        16);
    const auto growing = [=](NetBuilder& n, int x) {
      for (const char* name : {"1", "2", "3"}) {
        const int made = n.conv(name, norm_relu(n, std::string("n") + name, x), channels, 3, 1, 1);
        x = n.concat({x, made});
      }
      return x;
    };
    const double least = tested_engine().growing_cosine;
    compare_gradients(around("growing", growing, 16), 4,
                      least > 0 ? whole_net(least) : NetTolerance{});
  }
  for (const int stem : {8, 16}) {
    compare_around(
        "twice",
        [](auto& n, int x) {
          return n.concat({x, x});
        },
        stem);
  }
}

TEST_F(GradientTest, Dropout) {
  const auto pixels = [](NetBuilder& n, int x) { return conv(n, n.dropout(x, 0.4f), 8, 3, 1, 1); };
  const auto layers = [](NetBuilder& n, int x) {
    x = n.fully_connected("f", n.dropout(n.max_pool(x, 3, 3, 0), 0.5f), 40);
    return n.dropout(n.plain(OpKind::relu, x), 0.25f);
  };
  for (const int channels : tested_engine().channels) {
    compare_around("pixels", pixels, channels);
    compare_around("layers", layers, channels);
  }
}

TEST_F(GradientTest, AuxiliaryHeads) {
  const NetSpec net = around("auxiliary", [](NetBuilder& n, int x) {
    const int aux = n.conv("aux", n.adaptive_avg_pool(x, {2, 2}), 8, 1, 1, 0);
    n.linear("aux.fc", n.adaptive_avg_pool(aux, {1, 1}), true, 1.0f, 0.3f);
    return conv(n, x, 8, 3, 1, 1);
  });
  compare_gradients(net);
  compare_gradients(net, 4, {}, {.mixed = true});
}

TEST_F(GradientTest, BinaryLoss) {
  for (const int outputs : {1, 5}) {
    for (const bool gray : {false, true}) {
      NetBuilder builder("binary", {9, 10}, outputs);
      builder.loss(LossKind::binary);
      if (gray) builder.gray_input();
      const int x = builder.plain(OpKind::sigmoid, builder.conv("c", 0, 8, 3, 1, 1, true));
      builder.linear("fc", builder.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
      const NetSpec net = builder.finish();
      compare_gradients(net, 4, {}, {0.0f});
      compare_gradients(net, 4, {}, {0.2f, true});
      compare_gradients(net, 4, {}, {0.0f, false, true});
      compare_gradients(net, 4, {}, {0.2f, false, true});
    }
  }
}

// An output is right if it is on the side of its target.
TEST_F(GradientTest, TargetsThatAreAllRight) {
  NetBuilder builder("binary", {9, 10}, 3);
  builder.loss(LossKind::binary);
  builder.linear("fc", builder.adaptive_avg_pool(0, {1, 1}), true, 1.0f);
  const NetSpec net = builder.finish();
  const auto engine = make_started_engine(net, engine_options(4, 2));
  TestBatch batch = with_targets(make_batch(net, 4, 21), net, 41);
  std::vector<float> logits(12);
  engine->forward(placed(*engine, batch), {}, false, logits);
  for (size_t i = 0; i < 12; ++i) batch.targets[i] = logits[i] > 0 ? 0.5f : 0.49f;
  batch.targets[5] = 0.99f - batch.targets[5];  // of the second row
  batch.targets[11] = 0.99f - batch.targets[11];
  batch.weights[3] = 0;  // a row that does not count may have any values
  batch.targets[10] = 7;
  queue_step(*engine, batch);
  const StepMetrics metrics = engine->step_metrics();
  EXPECT_EQ(metrics.weight_sum, 3);
  EXPECT_FLOAT_EQ(static_cast<float>(metrics.top1), 3 - 1.0f / 3);
  EXPECT_EQ(metrics.top5, 2);
}

TEST_F(GradientTest, LossesAndMixes) {
  const NetSpec net = around("mix", [](NetBuilder& n, int x) { return n.plain(OpKind::gelu, x); });
  compare_gradients(net, 4, {}, {0.0f});
  compare_gradients(net, 4, {}, {0.4f});
  compare_gradients(net, 4, {}, {0.0f, true});
  compare_gradients(net, 5, {}, {0.3f, true});
}

}  // namespace
}  // namespace stoker
