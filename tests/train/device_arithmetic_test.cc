// Tests of the kernels' arithmetic against double precision and the libraries' definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/device/arithmetic_step.h"

namespace stoker::device {
namespace {

TEST(DeviceArithmeticTest, EveryBf16ComesBackAndTheRestRoundsToTheNearest) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 number_bits{static_cast<uint16_t>(bits)};
    const float value = to_float(number_bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(to_float(number<Bf16>(value))));
      continue;
    }
    EXPECT_EQ(number<Bf16>(value).bits, bits);
    if (std::isinf(value) || bits % 0x8000 >= 0x7f7f) continue;
    const float half = float_of((bits << 16) + 0x8000);  // half way to the next
    EXPECT_EQ(number<Bf16>(half).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(number<Bf16>(float_of((bits << 16) + 0x7fff)).bits, bits);
    EXPECT_EQ(number<Bf16>(float_of((bits << 16) + 0x8001)).bits, bits + 1);
  }
  EXPECT_EQ(to_float(number<Bf16>(std::numeric_limits<float>::max())),
            std::numeric_limits<float>::infinity());
}

TEST(DeviceArithmeticTest, SlopesAreTheFunctionsDerivatives) {
  for (double t = -6; t < 6; t += 0.0625) {
    const auto gelu = [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); };
    EXPECT_NEAR(activate(Activation::gelu, static_cast<float>(t)), gelu(t), 1e-6);
    EXPECT_NEAR(activation_slope(Activation::gelu, static_cast<float>(t)),
                (gelu(t + 1e-5) - gelu(t - 1e-5)) / 2e-5, 1e-6);
    const auto tanh_of = activate(Activation::tanh, static_cast<float>(t));
    EXPECT_NEAR(tanh_of, std::tanh(t), 1e-6);
    EXPECT_NEAR(activation_slope(Activation::tanh, tanh_of), 1 - std::tanh(t) * std::tanh(t), 1e-6);
    const auto sigmoid_of = activate(Activation::sigmoid, static_cast<float>(t));
    const double e = 1 / (1 + std::exp(-t));
    EXPECT_NEAR(sigmoid_of, e, 1e-6);
    EXPECT_NEAR(activation_slope(Activation::sigmoid, sigmoid_of), e * (1 - e), 1e-6);
    EXPECT_EQ(activate(Activation::relu, static_cast<float>(t)), t > 0 ? t : 0);
    EXPECT_EQ(activation_slope(Activation::relu, static_cast<float>(t)), t > 0 ? 1 : 0);
  }
}

// For channels whose mean is far from zero, E[x^2] - E[x]^2 in fp32 would be noise.
TEST(DeviceArithmeticTest, MomentsKeepTheirDigitsFarFromZero) {
  for (const double mean : {0.0, 1e3, -1e5}) {
    double sum = 0, squares = 0;
    Moments m;
    const int count = 1000;
    std::vector<float> x(count);
    for (int i = 0; i < count; ++i) x[i] = static_cast<float>(mean + std::sin(i));
    for (const float value : x) m.add(value, x[0]);
    for (const float value : x) sum += value;
    for (const float value : x) squares += (value - sum / count) * (value - sum / count);
    const NormChannel c =
        norm_channel(norm_statistics(m.sum, m.squares, x[0], count), 1e-5f, 2.0f, 0.5f, 3.0f);
    EXPECT_NEAR(c.mean, sum / count, 1e-6 * (1 + std::abs(mean)));
    EXPECT_NEAR(1 / (c.inverse * c.inverse) - 1e-5, squares / count, 2e-4);
    EXPECT_NEAR(c.distance, sum / count - 3, 1e-6 * (1 + std::abs(mean)));
    EXPECT_NEAR(c.scale, 2.0f * c.inverse, 1e-6);
  }
}

TEST(DeviceArithmeticTest, ViewsReflectAtTheEdges) {
  const int size = 5;
  const int expected[] = {2, 1, 0, 1, 2};  // shifted by -2
  for (int i = 0; i < size; ++i) EXPECT_EQ(seen_at(i, size, -2, false), expected[i]);
  for (int i = 0; i < size; ++i) EXPECT_EQ(seen_at(i, size, 0, true), 4 - i);
  EXPECT_EQ(seen_at(4, size, 2, false), 2);
  EXPECT_EQ(seen_at(0, size, 2, true), 2);  // the index is mirrored, then shifted
}

// For every pool: an output's window has exactly the inputs that it is a reader of.
TEST(DeviceArithmeticTest, WindowsAndReadersOfPoolsAreTheSamePairs) {
  std::vector<PoolAxis> axes = {{9, 4, 3, 2, 0, false},
                                {9, 5, 3, 2, 1, false},
                                {9, 9, 3, 1, 1, false},
                                {10, 5, 2, 2, 0, false},
                                {9, 5, 2, 2, 0, false}};  // the last one reaches over the edge
  for (const int out : {1, 2, 4, 7, 9, 12, 30}) axes.push_back({9, out, 1, 1, 0, true});
  for (const PoolAxis& axis : axes) {
    for (int i = 0; i < axis.in; ++i) {
      const PoolSpan readers = pool_readers(axis, i);
      for (int o = 0; o < axis.out; ++o) {
        const PoolSpan window = pool_window(axis, o);
        EXPECT_EQ(window.begin <= i && i < window.end, readers.begin <= o && o < readers.end)
            << axis.out << (axis.adaptive ? " adaptive" : " windows") << ", " << i << " and " << o;
      }
    }
  }
}

TEST(DeviceArithmeticTest, ABinaryOutputIsTorchs) {
  // torch.nn.functional.binary_cross_entropy_with_logits(1.5, 0.3): 1.5 * 0.7 + log(1 + e^-1.5)
  LossShape s;
  s.kind = LossKind::binary;
  s.classes = 4;
  const RowTarget mixed{1, 2, 0.3f};
  const BinaryOutput first = binary_output(s, mixed, 1, 1.5f);
  EXPECT_NEAR(first.loss, 1.5 * 0.7 + std::log1p(std::exp(-1.5)), 1e-6);
  EXPECT_NEAR(first.slope, 1 / (1 + std::exp(-1.5)) - 0.3, 1e-6);
  EXPECT_EQ(first.right, 1);
  EXPECT_EQ(binary_output(s, mixed, 2, 1.5f).right, 0);
  EXPECT_NEAR(binary_output(s, mixed, 0, -80.0f).loss, 0, 1e-6);
  EXPECT_NEAR(binary_output(s, mixed, 0, 200.0f).loss, 200, 1e-3);  // no overflow
  EXPECT_FALSE(valid_label(s, 4));
  s.classes = 1;  // then label 1 turns the output on
  EXPECT_TRUE(valid_label(s, 1));
  EXPECT_FALSE(valid_label(s, 2));
  EXPECT_EQ(binary_output(s, {1, 1, 1.0f}, 0, 3.0f).right, 1);
  EXPECT_EQ(binary_output(s, {0, 0, 1.0f}, 0, 3.0f).right, 0);
}

TEST(DeviceArithmeticTest, SgdIsTorchs) {
  // torch.optim.SGD, nesterov, decay 0.1, momentum 0.9, lr 0.5, from w = 1, v = 0.25, g = 0.5.
  UpdateRates rates;
  rates.momentum = 0.9f;
  rates.nesterov = 1;
  float weight = 1, momentum = 0.25f;
  sgd(rates, {0.5f, 0.1f, 0, 0, 0}, {2.0f, 1.0f}, 0.25f, &weight, &momentum);
  EXPECT_FLOAT_EQ(momentum, 0.225f + 0.6f);
  EXPECT_FLOAT_EQ(weight, 1 - 0.5f * (0.6f + 0.9f * 0.825f));
  rates.decoupled = 1;
  rates.nesterov = 0;
  weight = 1;
  momentum = 0.25f;
  sgd(rates, {0.5f, 0.1f, 0, 0, 0}, {2.0f, 1.0f}, 0.25f, &weight, &momentum);
  EXPECT_FLOAT_EQ(momentum, 0.225f + 0.5f);
  EXPECT_FLOAT_EQ(weight, 0.95f - 0.5f * 0.725f);
}

TEST(DeviceArithmeticTest, ScalesAreThoseOfTheirFormulas) {
  UpdateRates rates;
  EXPECT_EQ(clipped_scale(rates, 2.0f, 1e30), 2.0f);  // no clipping
  rates.clip_norm = 3;
  EXPECT_EQ(clipped_scale(rates, 2.0f, 2.0), 2.0f);                  // a norm of 2.8
  EXPECT_FLOAT_EQ(clipped_scale(rates, 2.0f, 25.0), 2.0f * 3 / 10);  // a norm of 10
  rates.trust = 0.01f;
  const TensorRate adapted{0.5f, 0.1f, 0, 1, 0}, plain{0.5f, 0.1f, 0, 0, 0};
  const TensorSquares squares{25.0, 16.0};  // norms of 5 and 4
  EXPECT_FLOAT_EQ(tensor_scale(rates, adapted, 2.0f, squares).trust, 0.01f * 4 / (10 + 0.1f * 4));
  EXPECT_EQ(tensor_scale(rates, plain, 2.0f, squares).trust, 1);
  EXPECT_EQ(tensor_scale(rates, adapted, 2.0f, {25.0, 0.0}).trust, 1);
  EXPECT_EQ(tensor_scale(rates, adapted, 2.0f, {0.0, 16.0}).trust, 1);
  EXPECT_EQ(tensor_scale(rates, adapted, 2.0f, squares).gradient, 2);
}

}  // namespace
}  // namespace stoker::device
