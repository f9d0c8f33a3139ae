// The CPU engine's batch norm against plain loops in double precision, on every instruction set of
// this machine for which it is compiled.
#include "train/cpu/batch_norm.h"

#include <gtest/gtest.h>

#include "train/cpu/kernel_targets.h"
// After the targets.
#include <hwy/targets.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/train/stored_values.h"

namespace stoker {
namespace {

struct NormCase {
  int64_t pixels;
  int channels;
};

// Values that repeat in every run: uniform in (-1, 1), spread around an offset of their channel.
std::vector<double> numbers(const NormCase& c, uint64_t seed, double offset) {
  std::vector<double> values(c.pixels * c.channels);
  for (size_t i = 0; i < values.size(); ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    const double uniform = static_cast<double>(static_cast<int32_t>(seed >> 32)) / 2147483648.0;
    values[i] = uniform + offset * std::sin(static_cast<double>(i % c.channels));
  }
  return values;
}

class BatchNormTest
    : public ::testing::TestWithParam<std::tuple<NormCase, Precision, bool, int64_t>> {
 protected:
  BatchNormTest()
      : c_(std::get<0>(GetParam())),
        x_(numbers(c_, 7, 3)),
        dy_(numbers(c_, 8, 0)),
        shape_{c_.pixels, c_.channels, std::get<1>(GetParam()), 1e-3f, std::get<2>(GetParam())},
        input_(shape_.precision, x_),
        gradient_(shape_.precision, dy_),
        mean_(c_.channels, NAN),
        variance_(c_.channels, NAN),
        scratch_(norm_scratch(shape_), NAN) {
    const NormCase one{1, c_.channels};
    for (const double v : numbers(one, 9, 1)) scale_.push_back(static_cast<float>(v + 0.5));
    for (const double v : numbers(one, 10, 1)) shift_.push_back(static_cast<float>(v));
    expect_statistics();
  }

  void SetUp() override { hwy::SetSupportedTargetsForTest(std::get<3>(GetParam())); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  size_t at(int64_t pixel, int channel) const { return pixel * c_.channels + channel; }
  double normal(int64_t pixel, int c) const {
    return (x_[at(pixel, c)] - want_mean_[c]) / std::sqrt(want_variance_[c] + shape_.eps);
  }
  double line(int64_t pixel, int c) const { return normal(pixel, c) * scale_[c] + shift_[c]; }
  // bf16 keeps eight bits; fp32 sums of thousands of terms lose some of theirs.
  double bound() const { return shape_.precision == Precision::bf16 ? 4e-3 : 1e-5; }

  void expect_statistics() {
    want_mean_.resize(c_.channels);
    want_variance_.resize(c_.channels);
    const auto count = static_cast<double>(c_.pixels);
    for (int c = 0; c < c_.channels; ++c) {
      for (int64_t p = 0; p < c_.pixels; ++p) want_mean_[c] += x_[at(p, c)] / count;
      for (int64_t p = 0; p < c_.pixels; ++p) {
        want_variance_[c] += std::pow(x_[at(p, c)] - want_mean_[c], 2) / count;
      }
    }
  }

  const NormCase c_;
  std::vector<double> x_, dy_, want_mean_, want_variance_;
  const PixelNormShape shape_;
  StoredValues input_, gradient_;
  std::vector<float> mean_, variance_, scale_, shift_, scratch_;
};

TEST_P(BatchNormTest, ForwardAndBackward) {
  const NormStatistics statistics{mean_.data(), variance_.data()};
  const NormParameters parameters{scale_.data(), shift_.data()};
  norm_statistics(shape_, input_.data(), statistics, scratch_.data());
  for (int c = 0; c < c_.channels; ++c) {
    EXPECT_NEAR(mean_[c], want_mean_[c], 3e-6);
    EXPECT_NEAR(variance_[c], want_variance_[c], 1e-5);
  }

  std::vector<double> empty(x_.size(), 99);
  StoredValues output(shape_.precision, empty);
  norm_forward(shape_, input_.data(), statistics, parameters, output.data(), scratch_.data());
  for (int64_t p = 0; p < c_.pixels; ++p) {
    for (int c = 0; c < c_.channels; ++c) {
      const double want = shape_.relu ? std::max(0.0, line(p, c)) : line(p, c);
      ASSERT_NEAR(output.at(at(p, c)), want, bound() * (1 + std::abs(want))) << p << ' ' << c;
    }
  }

  std::vector<float> scale_gradient(c_.channels, NAN), shift_gradient(c_.channels, NAN);
  // In place, as the plan may have it.
  const NormGradients gradients{scale_gradient.data(), shift_gradient.data()};
  norm_parameter_gradients(shape_, input_.data(), statistics, parameters, gradient_.data(),
                           gradients, scratch_.data());
  norm_input_gradient(shape_, input_.data(), gradient_.data(), gradients, shape_.pixels,
                      gradient_.data(), scratch_.data());
  const auto count = static_cast<double>(c_.pixels);
  for (int c = 0; c < c_.channels; ++c) {
    double shift = 0, scale = 0;
    const auto masked = [&](int64_t p) {
      return shape_.relu && line(p, c) <= 0 ? 0.0 : dy_[at(p, c)];
    };
    for (int64_t p = 0; p < c_.pixels; ++p) {
      shift += masked(p);
      scale += masked(p) * normal(p, c);
    }
    const double size = 1e-5 * std::sqrt(count) + 1e-6 * count;
    EXPECT_NEAR(shift_gradient[c], shift, size);
    EXPECT_NEAR(scale_gradient[c], scale, size);
    const double slope = scale_[c] / std::sqrt(want_variance_[c] + shape_.eps);
    for (int64_t p = 0; p < c_.pixels; ++p) {
      // A value this near to the ReLU's edge may fall on either side.
      if (shape_.relu && std::abs(line(p, c)) < 1e-5) continue;
      const double want = slope * (masked(p) - shift / count - normal(p, c) * scale / count);
      ASSERT_NEAR(gradient_.at(at(p, c)), want, bound() * (std::abs(slope) + std::abs(want)))
          << p << ' ' << c;
    }
  }
}

// NaN stays NaN, also where bits are rounded.
TEST_P(BatchNormTest, WhatIsNotANumberStaysSo) {
  const NormStatistics statistics{mean_.data(), variance_.data()};
  std::fill(mean_.begin(), mean_.end(), 0.0f);
  std::fill(variance_.begin(), variance_.end(), 1.0f);
  std::vector<double> bad(x_.size(), NAN);
  StoredValues input(shape_.precision, bad);
  PixelNormShape shape = shape_;
  shape.relu = false;
  StoredValues output = input_;
  norm_forward(shape, input.data(), statistics, {scale_.data(), shift_.data()}, output.data(),
               scratch_.data());
  for (size_t i = 0; i < x_.size(); ++i) ASSERT_TRUE(std::isnan(output.at(i))) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Each, BatchNormTest,
    ::testing::Combine(::testing::Values(NormCase{2, 16}, NormCase{90, 7}, NormCase{5, 3},
                                         NormCase{300, 12}, NormCase{5000, 28}, NormCase{4100, 64},
                                         NormCase{33, 160}),
                       ::testing::Values(Precision::fp32, Precision::bf16), ::testing::Bool(),
                       ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets())),
    [](const auto& test) {
      const NormCase& c = std::get<0>(test.param);
      return std::to_string(c.pixels) + "_pixels_" + std::to_string(c.channels) + "_channels_" +
             (std::get<1>(test.param) == Precision::bf16 ? "bf16_" : "fp32_") +
             (std::get<2>(test.param) ? "relu_" : "") + hwy::TargetName(std::get<3>(test.param));
    });

}  // namespace
}  // namespace stoker
