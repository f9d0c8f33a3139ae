// Winograd's convolutions against plain loops in double precision, on every instruction set of this
// machine for which they are compiled.
#include "train/cpu/winograd.h"

#include <gtest/gtest.h>

#include "train/cpu/kernel_targets.h"
// After the targets.
#include <hwy/targets.h>

#include <cmath>
#include <string>
#include <vector>

#include "train/cpu/memory.h"

namespace stoker {
namespace {

// Values in (-1, 1) that repeat in every run.
class Numbers {
 public:
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(static_cast<int32_t>(state_ >> 32)) / 2147483648.0;
  }

 private:
  uint64_t state_ = 7;
};

// (rows, channels, height, width) in double precision, and the same in a layout.
struct Values {
  int rows, channels, height, width;
  std::vector<double> data;

  Values(int n, int c, int h, int w)
      : rows(n), channels(c), height(h), width(w), data(size_t(n) * c * h * w) {}
  double& at(int n, int c, int y, int x) {
    return data[((size_t(n) * channels + c) * height + y) * width + x];
  }
  double inside(int n, int c, int y, int x) {
    return y < 0 || x < 0 || y >= height || x >= width ? 0 : at(n, c, y, x);
  }
  int stored(WinogradLayout layout) const {
    return layout == WinogradLayout::blocked ? (channels + 15) / 16 * 16 : channels;
  }
  size_t place(WinogradLayout layout, int n, int c, int y, int x) const {
    if (layout == WinogradLayout::nhwc) {
      return ((size_t(n) * height + y) * width + x) * channels + c;
    }
    const size_t blocks = stored(layout) / 16;
    return (((size_t(n) * blocks + c / 16) * height + y) * width + x) * 16 + c % 16;
  }
  template <typename Visit>
  void each(const Visit& visit) {
    for (int n = 0; n < rows; ++n)
      for (int c = 0; c < channels; ++c)
        for (int y = 0; y < height; ++y)
          for (int x = 0; x < width; ++x) visit(n, c, y, x);
  }
  void fill(Numbers& numbers) {  // with floats
    for (double& value : data) value = static_cast<float>(numbers.next());
  }
  std::vector<float> in(WinogradLayout layout, float rest = 0) {
    std::vector<float> out(size_t(rows) * stored(layout) * height * width, rest);
    each([&](int n, int c, int y, int x) {
      out[place(layout, n, c, y, x)] = static_cast<float>(at(n, c, y, x));
    });
    return out;
  }
  Values from(const std::vector<float>& laid, WinogradLayout layout) {
    Values out(rows, channels, height, width);
    each([&](int n, int c, int y, int x) { out.at(n, c, y, x) = laid[place(layout, n, c, y, x)]; });
    return out;
  }
};

// Of the norm of `expected`; infinite where something is not a number.
double error(const std::vector<double>& got, const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  const double share = std::sqrt(difference / norm);
  return std::isfinite(share) ? share : INFINITY;
}

struct Case {
  const char* name;
  int rows, in, out, height, width, padding;
};

// A direct convolution in fp32 has errors of 1e-7 to 1e-6.
constexpr double kBound = 1e-5, kWeightBound = 5e-5;

class WinogradTest : public ::testing::TestWithParam<std::tuple<Case, WinogradLayout, int64_t>> {
 protected:
  WinogradTest()
      : input_(made().rows, made().in, made().height, made().width),
        output_(made().rows, made().out, shape().out_height(), shape().out_width()),
        weights_(9 * size_t(made().in) * made().out),
        bias_(made().out) {
    Numbers numbers;
    input_.fill(numbers);
    for (float& weight : weights_) weight = static_cast<float>(numbers.next());
    for (float& bias : bias_) bias = static_cast<float>(numbers.next());
    gradient().fill(numbers);
  }

  void SetUp() override { hwy::SetSupportedTargetsForTest(std::get<2>(GetParam())); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  static const Case& made() { return std::get<0>(GetParam()); }
  static WinogradLayout layout() { return std::get<1>(GetParam()); }
  static WinogradShape shape() {
    return {made().rows,  made().in,      made().out, made().height,
            made().width, made().padding, layout()};
  }
  Values& gradient() { return output_; }
  size_t tap(int y, int x, int in, int out) const {
    return ((size_t(y) * 3 + x) * made().in + in) * made().out + out;
  }
  // Calls visit(n, y, x, in, out, v, u) for every product of a convolution: the output's pixel
  // (y, x), and the place (v, u) in the kernel.
  template <typename Visit>
  void each_product(const Visit& visit) {
    for (int n = 0; n < made().rows; ++n)
      for (int y = 0; y < output_.height; ++y)
        for (int x = 0; x < output_.width; ++x)
          for (int out = 0; out < made().out; ++out)
            for (int in = 0; in < made().in; ++in)
              for (int tap = 0; tap < 9; ++tap) visit(n, y, x, in, out, tap / 3, tap % 3);
  }
  // Memory that is not a number where nothing was written.
  static CpuMemory scratch(int64_t floats) {
    CpuMemory memory(floats * static_cast<int64_t>(sizeof(float)));
    for (float& value : memory.floats()) value = NAN;
    return memory;
  }

  Values input_, output_;
  std::vector<float> weights_, bias_;
};

TEST_P(WinogradTest, Forward) {
  Values expected(output_.rows, output_.channels, output_.height, output_.width);
  expected.each([&](int n, int c, int y, int x) { expected.at(n, c, y, x) = bias_[c]; });
  const int padding = made().padding;
  each_product([&](int n, int y, int x, int in, int out, int v, int u) {
    expected.at(n, out, y, x) +=
        input_.inside(n, in, y + v - padding, x + u - padding) * weights_[tap(v, u, in, out)];
  });
  const std::vector<float> input = input_.in(layout());
  for (const bool relu : {false, true}) {
    if (relu) {
      for (double& value : expected.data) value = std::max(value, 0.0);
    }
    std::vector<float> output = output_.in(layout(), NAN);
    CpuMemory memory = scratch(winograd_forward_scratch(shape()));
    winograd_forward(shape(), {input.data(), weights_.data(), bias_.data(), relu, output.data()},
                     memory.floats().data());
    EXPECT_LT(error(output_.from(output, layout()).data, expected.data), kBound);
    if (layout() == WinogradLayout::nhwc) continue;
    // What lies behind the last channel is zero, as oneDNN wants it.
    std::vector<bool> channel(output.size());
    output_.each(
        [&](int n, int c, int y, int x) { channel[output_.place(layout(), n, c, y, x)] = true; });
    for (size_t i = 0; i < output.size(); ++i) {
      if (channel[i]) continue;
      ASSERT_EQ(output[i], 0);
    }
  }
}

TEST_P(WinogradTest, BackwardData) {
  Values expected(input_.rows, input_.channels, input_.height, input_.width);
  const int padding = made().padding;
  each_product([&](int n, int y, int x, int in, int out, int v, int u) {
    const int from_y = y + v - padding, from_x = x + u - padding;
    if (from_y < 0 || from_x < 0 || from_y >= input_.height || from_x >= input_.width) return;
    expected.at(n, in, from_y, from_x) +=
        gradient().at(n, out, y, x) * weights_[tap(v, u, in, out)];
  });
  std::vector<float> transposed(weights_.size());
  for (int tap = 0; tap < 9; ++tap) {
    for (int in = 0; in < made().in; ++in) {
      for (int out = 0; out < made().out; ++out) {
        transposed[(size_t(tap) * made().out + out) * made().in + in] =
            weights_[(size_t(tap) * made().in + in) * made().out + out];
      }
    }
  }
  const std::vector<float> output_gradient = gradient().in(layout());
  std::vector<float> input_gradient = input_.in(layout(), NAN);
  CpuMemory memory = scratch(winograd_backward_data_scratch(shape()));
  winograd_backward_data(shape(),
                         {output_gradient.data(), transposed.data(), input_gradient.data()},
                         memory.floats().data());
  EXPECT_LT(error(input_.from(input_gradient, layout()).data, expected.data), kBound);
}

TEST_P(WinogradTest, BackwardWeights) {
  std::vector<double> expected(weights_.size()), expected_bias(bias_.size());
  const int padding = made().padding;
  each_product([&](int n, int y, int x, int in, int out, int v, int u) {
    expected[tap(v, u, in, out)] +=
        gradient().at(n, out, y, x) * input_.inside(n, in, y + v - padding, x + u - padding);
  });
  gradient().each(
      [&](int n, int c, int y, int x) { expected_bias[c] += gradient().at(n, c, y, x); });
  const std::vector<float> input = input_.in(layout()), output_gradient = gradient().in(layout());
  std::vector<float> weights(weights_.size(), NAN), bias(bias_.size(), NAN);
  CpuMemory memory = scratch(winograd_backward_weights_scratch(shape()));
  winograd_backward_weights(shape(),
                            {input.data(), output_gradient.data(), weights.data(), bias.data()},
                            memory.floats().data());
  EXPECT_LT(error({weights.begin(), weights.end()}, expected), kWeightBound);
  EXPECT_LT(error({bias.begin(), bias.end()}, expected_bias), kWeightBound);
}

INSTANTIATE_TEST_SUITE_P(
    Each, WinogradTest,
    ::testing::Combine(::testing::Values(Case{"whole_tiles", 2, 16, 32, 8, 8, 1},
                                         Case{"odd_sides", 3, 24, 40, 7, 11, 1},
                                         Case{"few_channels", 2, 3, 5, 9, 6, 1},
                                         Case{"valid", 2, 20, 12, 11, 6, 0},
                                         Case{"wide_padding", 1, 33, 17, 5, 10, 2},
                                         Case{"smaller_than_a_tile", 5, 40, 16, 2, 3, 1},
                                         Case{"blocks_of_tiles", 7, 16, 16, 29, 25, 1}),
                       ::testing::Values(WinogradLayout::nhwc, WinogradLayout::blocked),
                       ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets())),
    [](const auto& test) {
      const bool nhwc = std::get<1>(test.param) == WinogradLayout::nhwc;
      return std::string(std::get<0>(test.param).name) + (nhwc ? "_nhwc_" : "_blocked_") +
             hwy::TargetName(std::get<2>(test.param));
    });

TEST(WinogradPaysTest, OnlyWhereTheTilesAndChannelsAreFull) {
  const auto pays = [](int rows, int in, int out, int side) {
    return winograd_pays({rows, in, out, side, side, 1, WinogradLayout::nhwc});
  };
  EXPECT_TRUE(pays(16, 64, 64, 56));
  EXPECT_TRUE(pays(16, 512, 512, 7));
  EXPECT_TRUE(pays(256, 24, 64, 31));
  EXPECT_TRUE(pays(64, 160, 12, 32));
  EXPECT_TRUE(pays(64, 16, 12, 32));
  EXPECT_TRUE(pays(1, 256, 256, 14));
  EXPECT_FALSE(pays(2, 512, 512, 7));  // too few tiles for the transform of the weights
  EXPECT_FALSE(pays(256, 64, 64, 2));  // a quarter of each tile
  EXPECT_FALSE(pays(64, 8, 8, 32));    // half a panel
}

}  // namespace
}  // namespace stoker
