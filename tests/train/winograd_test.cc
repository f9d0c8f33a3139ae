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

#include "tests/train/stored_values.h"
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
struct WinogradValues {
  int rows, channels, height, width;
  std::vector<double> data;

  WinogradValues(int n, int c, int h, int w)
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
  void fill(Numbers& numbers) {
    for (double& value : data) value = numbers.next();
  }
  // Returns these values as a kernel reads them, and rounds them to that. Behind the last channel
  // is `rest`.
  StoredValues in(WinogradLayout layout, Precision precision, double rest = 0) {
    std::vector<double> laid(size_t(rows) * stored(layout) * height * width, rest);
    each([&](int n, int c, int y, int x) { laid[place(layout, n, c, y, x)] = at(n, c, y, x); });
    StoredValues out(precision, laid);
    each([&](int n, int c, int y, int x) { at(n, c, y, x) = laid[place(layout, n, c, y, x)]; });
    return out;
  }
  // As many values that are not numbers, for a kernel to write.
  StoredValues empty(WinogradLayout layout, Precision precision) const {
    return WinogradValues(rows, channels, height, width).filled(NAN).in(layout, precision, NAN);
  }
  std::vector<double> from(const StoredValues& laid, WinogradLayout layout) const {
    WinogradValues out(rows, channels, height, width);
    out.each([&](int n, int c, int y, int x) {
      out.at(n, c, y, x) = laid.at(place(layout, n, c, y, x));
    });
    return out.data;
  }

 private:
  WinogradValues& filled(double value) {
    std::fill(data.begin(), data.end(), value);
    return *this;
  }
};

// Relative to the norm of `expected`; infinite where something is not a number.
double error(const std::vector<double>& got, const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  const double share = std::sqrt(difference / norm);
  return std::isfinite(share) ? share : INFINITY;
}

struct WinogradCase {
  const char* name;
  int rows, in, out, height, width, padding;
};

// How activations are stored.
struct Storage {
  const char* name;
  WinogradLayout layout;
  Precision precision;
};

// A direct convolution in fp32 has errors of 1e-7 to 1e-6; values that are rounded to bf16 have
// errors of up to 2^-9, a half of that on average.
constexpr double kBound = 1e-5, kHalfBound = 2.5e-3, kWeightBound = 5e-5;

class WinogradTest : public ::testing::TestWithParam<std::tuple<WinogradCase, Storage, int64_t>> {
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

  static const WinogradCase& made() { return std::get<0>(GetParam()); }
  static WinogradLayout layout() { return std::get<1>(GetParam()).layout; }
  static Precision precision() { return std::get<1>(GetParam()).precision; }
  static double bound() { return precision() == Precision::bf16 ? kHalfBound : kBound; }
  static WinogradShape shape() {
    return {made().rows,  made().in,      made().out, made().height,
            made().width, made().padding, layout(),   precision()};
  }
  WinogradValues& gradient() { return output_; }
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

  WinogradValues input_, output_;
  std::vector<float> weights_, bias_;
};

TEST_P(WinogradTest, Forward) {
  StoredValues input = input_.in(layout(), precision());
  WinogradValues expected(output_.rows, output_.channels, output_.height, output_.width);
  expected.each([&](int n, int c, int y, int x) { expected.at(n, c, y, x) = bias_[c]; });
  const int padding = made().padding;
  each_product([&](int n, int y, int x, int in, int out, int v, int u) {
    expected.at(n, out, y, x) +=
        input_.inside(n, in, y + v - padding, x + u - padding) * weights_[tap(v, u, in, out)];
  });
  for (const bool relu : {false, true}) {
    if (relu) {
      for (double& value : expected.data) value = std::max(value, 0.0);
    }
    StoredValues output = output_.empty(layout(), precision());
    CpuMemory memory = scratch(winograd_forward_scratch(shape()));
    winograd_forward(shape(), {input.data(), weights_.data(), bias_.data(), relu, output.data()},
                     memory.floats().data());
    EXPECT_LT(error(output_.from(output, layout()), expected.data), bound());
    if (layout() == WinogradLayout::nhwc) continue;
    // Values behind the last channel are zero, as oneDNN wants it.
    std::vector<bool> channel(output.size());
    output_.each(
        [&](int n, int c, int y, int x) { channel[output_.place(layout(), n, c, y, x)] = true; });
    for (size_t i = 0; i < output.size(); ++i) {
      if (channel[i]) continue;
      ASSERT_EQ(output.at(i), 0);
    }
  }
}

TEST_P(WinogradTest, BackwardData) {
  StoredValues output_gradient = gradient().in(layout(), precision());
  WinogradValues expected(input_.rows, input_.channels, input_.height, input_.width);
  const int padding = made().padding;
  each_product([&](int n, int y, int x, int in, int out, int v, int u) {
    const int from_y = y + v - padding, from_x = x + u - padding;
    if (from_y < 0 || from_x < 0 || from_y >= input_.height || from_x >= input_.width) return;
    expected.at(n, in, from_y, from_x) +=
        gradient().at(n, out, y, x) * weights_[tap(v, u, in, out)];
  });
  StoredValues input_gradient = input_.empty(layout(), precision());
  CpuMemory memory = scratch(winograd_backward_data_scratch(shape()));
  winograd_backward_data(shape(), {output_gradient.data(), weights_.data(), input_gradient.data()},
                         memory.floats().data());
  EXPECT_LT(error(input_.from(input_gradient, layout()), expected.data), bound());
}

TEST_P(WinogradTest, BackwardWeights) {
  StoredValues input = input_.in(layout(), precision());
  StoredValues output_gradient = gradient().in(layout(), precision());
  std::vector<double> expected(weights_.size()), expected_bias(bias_.size());
  const int padding = made().padding;
  each_product([&](int n, int y, int x, int in, int out, int v, int u) {
    expected[tap(v, u, in, out)] +=
        gradient().at(n, out, y, x) * input_.inside(n, in, y + v - padding, x + u - padding);
  });
  gradient().each(
      [&](int n, int c, int y, int x) { expected_bias[c] += gradient().at(n, c, y, x); });
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
    ::testing::Combine(::testing::Values(WinogradCase{"whole_tiles", 2, 16, 32, 8, 8, 1},
                                         WinogradCase{"odd_sides", 3, 24, 40, 7, 11, 1},
                                         WinogradCase{"few_channels", 2, 3, 5, 9, 6, 1},
                                         WinogradCase{"valid", 2, 20, 12, 11, 6, 0},
                                         WinogradCase{"wide_padding", 1, 33, 17, 5, 10, 2},
                                         WinogradCase{"smaller_than_a_tile", 5, 40, 16, 2, 3, 1},
                                         WinogradCase{"blocks_of_tiles", 7, 16, 16, 29, 25, 1},
                                         WinogradCase{"blocks_of_panels", 2, 88, 72, 7, 6, 1},
                                         WinogradCase{"blocks_of_5_panels", 40, 3, 344, 1, 5, 1},
                                         WinogradCase{"blocks_of_both", 6, 3, 72, 17, 18, 1}),
                       ::testing::Values(Storage{"nhwc", WinogradLayout::nhwc, Precision::fp32},
                                         Storage{"blocked", WinogradLayout::blocked,
                                                 Precision::fp32},
                                         Storage{"bf16", WinogradLayout::nhwc, Precision::bf16}),
                       ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets())),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name + "_" +
             hwy::TargetName(std::get<2>(test.param));
    });

TEST(WinogradPaysTest, OnlyWhereTheTilesAndChannelsAreFull) {
  const auto pays = [](int rows, int in, int out, int side, Precision precision = Precision::fp32) {
    return winograd_pays({rows, in, out, side, side, 1, WinogradLayout::nhwc, precision});
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
  // Direct convolutions in bf16 take little more than half the time.
  EXPECT_TRUE(pays(8, 256, 256, 56, Precision::bf16));
  EXPECT_TRUE(pays(128, 160, 12, 32, Precision::bf16));
  EXPECT_FALSE(pays(16, 512, 512, 7, Precision::bf16));
  EXPECT_FALSE(pays(64, 16, 16, 32, Precision::bf16));
}

}  // namespace
}  // namespace stoker
