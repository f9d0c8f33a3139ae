// Tests of the emulated batch-norm kernels against the plain loops, one call at a time: results
// that are not sums must have the same bits, also in bf16.
#include <gtest/gtest.h>

#include <random>
#include <tuple>
#include <vector>

#include "tests/train/kernel_fixture.h"

namespace stoker {
namespace {

struct KernelNormCase {
  Precision type;
  int64_t pixels;
  int channels;
  Activation activation;
  bool residual, two;
};

class KernelNormTest : public ::testing::TestWithParam<KernelNormCase> {
 protected:
  NormShape shape() const {
    const KernelNormCase& c = GetParam();
    return {c.pixels, c.channels, c.type, 1e-5f, c.activation};
  }
  int64_t numbers() const { return GetParam().pixels * GetParam().channels; }
  Bytes tensor() const { return Bytes(numbers() * (GetParam().type == Precision::bf16 ? 2 : 4)); }
  Bytes noise(float mean, float deviation) {
    Bytes out = tensor();
    fill(out, numbers(), GetParam().type, mean, deviation);
    return out;
  }
  Bytes per_channel(float mean, float deviation) {
    Bytes out(GetParam().channels * int64_t{4});
    fill(out, GetParam().channels, Precision::fp32, mean, deviation);
    return out;
  }
  // Two numbers per channel, the second ones positive, for a replica's numbers or sums.
  Bytes per_channel_pairs(float first, float second, float factor) {
    Bytes out(GetParam().channels * int64_t{8});
    std::normal_distribution<float> draw(0, 0.1f);
    for (int i = 0; i < 2 * GetParam().channels; ++i) {
      out.at<float>()[i] = factor * ((i < GetParam().channels ? first : second) + draw(random_));
    }
    return out;
  }
  Bytes numbers_of_three(const Bytes& a, const Bytes& b, const Bytes& c) const {
    Bytes out(3 * stride() * int64_t{4});
    int64_t at = 0;
    for (const Bytes* each : {&a, &b, &c}) {
      std::copy_n(each->at<float>(), 2 * GetParam().channels, out.at<float>() + stride() * at++);
    }
    return out;
  }
  int64_t stride() const { return 2 * GetParam().channels + 5; }
  void fill(Bytes& out, int64_t count, Precision type, float mean, float deviation) {
    std::normal_distribution<float> draw(mean, deviation);
    host::with_type(type, [&]<typename T>(host::Tag<T>) {
      for (int64_t i = 0; i < count; ++i) host::store<T>(out.at(), i, draw(random_));
    });
  }

  Bytes random_mask() {
    Bytes mask(norm_mask_bytes(shape()));
    for (int64_t i = 0; i < norm_mask_bytes(shape()); ++i) {
      mask.at<uint8_t>()[i] = static_cast<uint8_t>(random_());
    }
    return mask;
  }
  struct BackwardInput {
    Bytes x, dy, dy2, gamma, mask, planes;
  };
  BackwardInput backward_input() {
    BackwardInput in{noise(3, 2),          noise(0, 1),   noise(0, 1),
                     per_channel(1, 0.2f), random_mask(), Bytes(GetParam().channels * int64_t{16})};
    fill(in.planes, GetParam().channels * int64_t{4}, Precision::fp32, 1, 0.5f);
    return in;
  }
  struct BackwardResult {
    Bytes dx, dresidual, dgamma, dbeta, own;
  };
  BackwardResult backward_result() const {
    const int64_t channels = GetParam().channels;
    return {tensor(), tensor(), Bytes(channels * 4), Bytes(channels * 4), Bytes(channels * 8)};
  }
  // All but dx.
  NormBackward arguments(const BackwardInput& in, const BackwardResult& r,
                         const Bytes& scratch) const {
    const KernelNormCase& c = GetParam();
    NormBackward a;
    a.x = in.x.at();
    a.mask = c.residual && c.activation == Activation::relu ? in.mask.at<uint8_t>() : nullptr;
    a.dy = in.dy.at();
    a.dy2 = c.two ? in.dy2.at() : nullptr;
    a.gamma = in.gamma.at<float>();
    a.planes = in.planes.at<float>();
    a.dgamma = r.dgamma.at<float>();
    a.dbeta = r.dbeta.at<float>();
    a.dresidual = c.residual ? r.dresidual.at() : nullptr;
    a.scratch = scratch.at();
    return a;
  }

  std::mt19937 random_{7};
  TwoOps ops_;
};

void expect_near_bytes(const Bytes& a, const Bytes& b, int64_t count, Precision type,
                       double tolerance) {
  host::with_type(type, [&]<typename T>(host::Tag<T>) {
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double x = host::load<T>(a.at(), i), y = host::load<T>(b.at(), i);
      difference += (x - y) * (x - y);
      size += y * y;
    }
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(size));
  });
}

TEST_P(KernelNormTest, ForwardIsThePlainLoopsAndTheMaskIsWhereYIsPositive) {
  const KernelNormCase& c = GetParam();
  const NormShape s = shape();
  const bool masked = c.residual && c.activation == Activation::relu;
  const Bytes x = noise(3, 2), residual = noise(0, 1), gamma = per_channel(1, 0.2f);
  const Bytes beta = per_channel(0, 0.2f), running = per_channel(0.5f, 0.1f);
  const auto run = [&](DeviceOps& ops, const Bytes& y, const Bytes& mask, const Bytes& planes,
                       const Bytes& moments, const float* sums = nullptr) {
    const Bytes scratch(channel_scratch_bytes(c.channels));
    NormForward a;
    a.x = x.at();
    a.residual = c.residual ? residual.at() : nullptr;
    a.gamma = gamma.at<float>();
    a.beta = beta.at<float>();
    a.running_mean = running.at<float>();
    a.y = y.at();
    a.mask = masked ? mask.at<uint8_t>() : nullptr;
    a.planes = planes.at<float>();
    a.moments = moments.at<float>();
    a.scratch = scratch.at();
    a.sums = sums;
    ops.norm_training(s, a);
    ops_.stream().synchronize();
  };
  const int64_t planes = c.channels * int64_t{4} * static_cast<int64_t>(NormPlane::count);
  const Bytes y = tensor(), mask(norm_mask_bytes(s)), of_y(planes), moments(c.channels * 8);
  run(ops_.kernels(), y, mask, of_y, moments);
  const Bytes y2 = tensor(), mask2(norm_mask_bytes(s)), of_y2(planes), moments2(c.channels * 8);
  run(ops_.loops(), y2, mask2, of_y2, moments2);
  const double tolerance = c.type == Precision::bf16 ? 1e-3 : 1e-6;
  expect_near_bytes(y, y2, numbers(), c.type, tolerance);
  expect_near_bytes(of_y, of_y2, planes / 4, Precision::fp32, 1e-5);
  expect_near_bytes(moments, moments2, c.channels * 2, Precision::fp32, 1e-5);
  // With sums from outside.
  std::vector<float> sums(2 * static_cast<size_t>(c.channels));
  host::with_type(c.type, [&]<typename T>(host::Tag<T>) {
    for (int64_t i = 0; i < numbers(); ++i) {
      const float value = host::load<T>(x.at(), i);
      sums[i % c.channels] += value;
      sums[c.channels + i % c.channels] += value * value;
    }
  });
  const Bytes y3 = tensor(), mask3(norm_mask_bytes(s)), of_y3(planes), moments3(c.channels * 8);
  run(ops_.kernels(), y3, mask3, of_y3, moments3, sums.data());
  expect_near_bytes(y3, y2, numbers(), c.type, c.type == Precision::bf16 ? 1e-3 : 1e-4);
  expect_near_bytes(moments3, moments2, c.channels * 2, Precision::fp32, 1e-4);
  if (!masked) return;
  host::with_type(c.type, [&]<typename T>(host::Tag<T>) {
    const int width = norm_mask_width(s);
    for (int64_t i = 0; i < numbers(); ++i) {
      const bool kept = (mask.at<uint8_t>()[i / width] >> i % width & 1) != 0;
      ASSERT_EQ(kept, host::load<T>(y.at(), i) > 0) << i;
    }
  });
}

TEST_P(KernelNormTest, InferenceHasTheBitsOfThePlainLoops) {
  const KernelNormCase& c = GetParam();
  const Bytes x = noise(3, 2), residual = noise(0, 1), gamma = per_channel(1, 0.2f);
  const Bytes beta = per_channel(0, 0.2f);
  // The variances follow the means and may be unaligned.
  Bytes running(c.channels * int64_t{8});
  fill(running, 2 * c.channels, Precision::fp32, 4, 0.1f);
  const auto run = [&](DeviceOps& ops) {
    Bytes y = tensor();
    NormForward a;
    a.x = x.at();
    a.residual = c.residual ? residual.at() : nullptr;
    a.gamma = gamma.at<float>();
    a.beta = beta.at<float>();
    a.running_mean = running.at<float>();
    a.running_variance = a.running_mean + c.channels;
    a.y = y.at();
    ops.norm_inference(shape(), a);
    ops_.stream().synchronize();
    return y;
  };
  EXPECT_TRUE(run(ops_.kernels()) == run(ops_.loops()));
}

TEST_P(KernelNormTest, BackwardIsThePlainLoops) {
  const KernelNormCase& c = GetParam();
  const NormShape s = shape();
  const BackwardInput in = backward_input();
  const auto run = [&](DeviceOps& ops) {
    const Bytes scratch(channel_scratch_bytes(c.channels));
    BackwardResult r = backward_result();
    NormBackward a = arguments(in, r, scratch);
    a.dx = r.dx.at();
    ops.norm_backward(s, a);
    ops_.stream().synchronize();
    return r;
  };
  const BackwardResult kernels = run(ops_.kernels()), loops = run(ops_.loops());
  EXPECT_TRUE(kernels.dresidual == loops.dresidual);
  expect_near_bytes(kernels.dgamma, loops.dgamma, c.channels, Precision::fp32, 1e-5);
  expect_near_bytes(kernels.dbeta, loops.dbeta, c.channels, Precision::fp32, 1e-4);
  expect_near_bytes(kernels.dx, loops.dx, numbers(), c.type,
                    c.type == Precision::bf16 ? 2e-3 : 1e-5);
  const BackwardResult again = run(ops_.kernels());  // another block comes last
  EXPECT_TRUE(again.dx == kernels.dx && again.dgamma == kernels.dgamma &&
              again.dbeta == kernels.dbeta);
}

// The first half sums this replica's rows, from x or with sums from outside. What follows from all
// replicas' numbers has the bits of the plain loops.
TEST_P(KernelNormTest, TheHalvesOfForwardAreThePlainLoops) {
  const KernelNormCase& c = GetParam();
  const NormShape s = shape();
  const bool masked = c.residual && c.activation == Activation::relu;
  const Bytes x = noise(3, 2), residual = noise(0, 1), gamma = per_channel(1, 0.2f);
  const Bytes beta = per_channel(0, 0.2f), running = per_channel(0.5f, 0.1f);
  NormForward a;
  a.x = x.at();
  a.residual = c.residual ? residual.at() : nullptr;
  a.gamma = gamma.at<float>();
  a.beta = beta.at<float>();
  a.running_mean = running.at<float>();
  const auto own_of = [&](DeviceOps& ops, const float* sums) {
    Bytes own(c.channels * int64_t{8});
    const Bytes scratch(channel_scratch_bytes(c.channels));
    NormForward b = a;
    b.scratch = scratch.at();
    b.sums = sums;
    ops.norm_statistics(s, b, own.at<float>());
    ops_.stream().synchronize();
    return own;
  };
  const Bytes own = own_of(ops_.loops(), nullptr);
  expect_near_bytes(own_of(ops_.kernels(), nullptr), own, 2 * c.channels, Precision::fp32, 1e-5);
  const Bytes sums = per_channel_pairs(3, 13, static_cast<float>(c.pixels));
  EXPECT_TRUE(own_of(ops_.kernels(), sums.at<float>()) == own_of(ops_.loops(), sums.at<float>()));

  const Bytes numbers =
      numbers_of_three(own, per_channel_pairs(2.5f, 4, 1), per_channel_pairs(3.5f, 5, 1));
  const int64_t planes = c.channels * int64_t{4} * static_cast<int64_t>(NormPlane::count);
  struct Result {
    Bytes y, mask, planes, moments;
  };
  const auto run = [&](DeviceOps& ops) {
    Result r{tensor(), Bytes(norm_mask_bytes(s)), Bytes(planes), Bytes(c.channels * int64_t{8})};
    NormForward b = a;
    b.y = r.y.at();
    b.mask = masked ? r.mask.at<uint8_t>() : nullptr;
    b.planes = r.planes.at<float>();
    b.moments = r.moments.at<float>();
    ops.norm_united(s, b, {numbers.at<float>(), stride(), 3});
    ops_.stream().synchronize();
    return r;
  };
  const Result kernels = run(ops_.kernels()), loops = run(ops_.loops());
  EXPECT_TRUE(kernels.y == loops.y && kernels.mask == loops.mask);
  EXPECT_TRUE(kernels.planes == loops.planes && kernels.moments == loops.moments);
}

TEST_P(KernelNormTest, TheHalvesOfBackwardAreThePlainLoops) {
  const KernelNormCase& c = GetParam();
  const NormShape s = shape();
  const BackwardInput in = backward_input();
  const Bytes second = per_channel_pairs(2, 30, 1), third = per_channel_pairs(-3, 50, 1);
  // `first`: the numbers of this replica, or null: those that it has computed.
  const auto run = [&](DeviceOps& ops, const Bytes* first) {
    const Bytes scratch(channel_scratch_bytes(c.channels));
    BackwardResult r = backward_result();
    NormBackward a = arguments(in, r, scratch);
    ops.norm_backward_sums(s, a, r.own.at<float>());
    ops_.stream().synchronize();
    const Bytes numbers = numbers_of_three(first != nullptr ? *first : r.own, second, third);
    a.dgamma = a.dbeta = nullptr;
    a.dx = r.dx.at();
    ops.norm_backward_united(s, a, {numbers.at<float>(), stride(), 3});
    ops_.stream().synchronize();
    return r;
  };
  const BackwardResult loops = run(ops_.loops(), nullptr),
                       kernels = run(ops_.kernels(), &loops.own);
  EXPECT_TRUE(kernels.dresidual == loops.dresidual);
  expect_near_bytes(kernels.own, loops.own, 2 * c.channels, Precision::fp32, 1e-4);
  expect_near_bytes(kernels.dgamma, loops.dgamma, c.channels, Precision::fp32, 1e-5);
  expect_near_bytes(kernels.dbeta, loops.dbeta, c.channels, Precision::fp32, 1e-4);
  EXPECT_TRUE(kernels.dx == loops.dx);
  const BackwardResult again = run(ops_.kernels(), nullptr);  // another block comes last
  EXPECT_TRUE(again.own == kernels.own && again.dgamma == kernels.dgamma);
}

std::vector<KernelNormCase> cases() {
  std::vector<KernelNormCase> all;
  for (const Precision type : {Precision::fp32, Precision::bf16}) {
    // Widths of 8, 4 and 1; one split, several, several groups of them.
    for (const auto& [pixels, channels] : std::vector<std::pair<int64_t, int>>{
             {7, 24}, {431, 12}, {433, 264}, {2503, 13}, {8501, 128}}) {
      all.push_back({type, pixels, channels, Activation::none, true, true});
      all.push_back({type, pixels, channels, Activation::relu, false, true});
      all.push_back({type, pixels, channels, Activation::relu, true, false});
      all.push_back({type, pixels, channels, Activation::relu, true, true});
      all.push_back({type, pixels, channels, Activation::gelu, false, false});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Emulated, KernelNormTest, ::testing::ValuesIn(cases()));

}  // namespace
}  // namespace stoker
