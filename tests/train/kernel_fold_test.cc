// Tests of folded convolutions: the same outputs and gradients as without folding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <vector>

#include "tests/train/kernel_fixture.h"
#include "train/cuda/fold_shape.h"

namespace stoker {
namespace {

ConvShape stem(Size size, Size kernel, Size padding, int read, Precision type) {
  ConvShape s;
  s.rows = 3;
  s.in_channels = 8;
  s.read_channels = read;
  s.in_height = size.height;
  s.in_width = size.width;
  s.out_channels = 6;
  s.kernel = kernel;
  s.stride = 2;
  s.padding = padding;
  s.out_height = (size.height + 2 * padding.height - kernel.height) / 2 + 1;
  s.out_width = (size.width + 2 * padding.width - kernel.width) / 2 + 1;
  s.type = type;
  return s;
}

int64_t fold_pixels(const ConvShape& s) { return int64_t{s.rows} * s.in_height * s.in_width; }
int64_t taps_of(const ConvShape& s) {
  return int64_t{s.out_channels} * s.kernel.height * s.kernel.width;
}
int64_t outputs_of(const ConvShape& s) {
  return int64_t{s.rows} * s.out_height * s.out_width * s.out_channels;
}

// Small whole numbers: sums are exact in any order, in both precisions of the operands.
std::vector<float> whole_numbers(int64_t count, int channels, int read, int seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::uniform_int_distribution<int> any(-3, 3);
  std::vector<float> values(static_cast<size_t>(count * channels));
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<int>(i % channels) < read) values[i] = static_cast<float>(any(random));
  }
  return values;
}

class KernelFoldTest : public ::testing::TestWithParam<Precision> {
 protected:
  void expect_the_same(const ConvShape& s) {
    ASSERT_TRUE(fold(s).has_value());
    const int64_t bytes = s.type == Precision::bf16 ? 2 : 4;
    const auto kernels = ops_.kernels().make_conv(s, true);
    EXPECT_THAT(kernels->implementation(ConvPass::forward), ::testing::HasSubstr("2x2"));
    const auto loops = ops_.loops().make_conv(s, true);
    const Bytes x(fold_pixels(s) * s.in_channels * bytes), w(taps_of(s) * s.in_channels * bytes),
        dy(outputs_of(s) * bytes);
    host::store_floats(whole_numbers(fold_pixels(s), s.in_channels, s.read_channels, 1), s.type,
                       x.at());
    host::store_floats(whole_numbers(taps_of(s), s.in_channels, s.read_channels, 2), s.type,
                       w.at());
    host::store_floats(whole_numbers(outputs_of(s) / s.out_channels, s.out_channels, 6, 3), s.type,
                       dy.at());
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_weights}) {
      const bool forward = pass == ConvPass::forward;
      const int64_t size = bytes * (forward ? outputs_of(s) : taps_of(s) * s.in_channels);
      const Bytes ours(size), theirs(size), space(kernels->workspace_bytes(pass)),
          other(loops->workspace_bytes(pass));
      kernels->run(pass, x.at(), forward ? w.at() : dy.at(), ours.at(), space.at());
      loops->run(pass, x.at(), forward ? w.at() : dy.at(), theirs.at(), other.at());
      ops_.stream().synchronize();
      EXPECT_EQ(host::as_floats(ours.at(), size / bytes, s.type),
                host::as_floats(theirs.at(), size / bytes, s.type))
          << (forward ? "forward" : "backward") << ", " << s.in_height << "x" << s.in_width
          << ", kernel " << s.kernel.height << "x" << s.kernel.width;
    }
  }
  TwoOps ops_;
};

TEST_P(KernelFoldTest, IsTheSameSum) {
  for (const int read : {1, 3}) expect_the_same(stem({14, 12}, {7, 7}, {3, 3}, read, GetParam()));
  for (const int size : {16, 17, 18, 19}) {
    for (const int padding : {0, 1, 2, 3}) {
      expect_the_same(stem({size, 21}, {7, 7}, {padding, padding}, 3, GetParam()));
      if (padding < 3) expect_the_same(stem({size, 21}, {5, 7}, {padding, padding}, 3, GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, KernelFoldTest,
                         ::testing::Values(Precision::fp32, Precision::bf16));

TEST(FoldTest, OfResNet) {
  const auto shape = fold(stem({224, 224}, {7, 7}, {3, 3}, 3, Precision::bf16));
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->folded.in_channels, 16);
  EXPECT_EQ(shape->folded.in_height, 113);
  EXPECT_EQ(shape->folded.kernel, (Size{4, 4}));
  EXPECT_EQ(shape->folded.padding, (Size{1, 1}));
  EXPECT_EQ(shape->folded.stride, 1);
  EXPECT_EQ(shape->folded.out_height, 112);
}

TEST(FoldTest, WhatIsNotFolded) {
  const ConvShape good = stem({224, 224}, {7, 7}, {3, 3}, 3, Precision::bf16);
  const auto changed = [&](auto change) {
    ConvShape shape = good;
    change(shape);
    return fold(shape).has_value();
  };
  EXPECT_TRUE(changed([](ConvShape&) {}));
  EXPECT_FALSE(changed([](ConvShape& s) { s.stride = 1; }));
  EXPECT_FALSE(changed([](ConvShape& s) { s.stride = 4; }));
  EXPECT_FALSE(changed([](ConvShape& s) { s.read_channels = 0; }));
  EXPECT_FALSE(changed([](ConvShape& s) { s.read_channels = 2; }));
  EXPECT_FALSE(changed([](ConvShape& s) { s.kernel.width = 6; }));
  EXPECT_FALSE(changed([](ConvShape& s) { s.kernel.height = 3; }));
}

TEST(FoldTest, HasNoGradientOfItsInput) {
  TwoOps ops;
  const auto conv =
      ops.kernels().make_conv(stem({14, 12}, {7, 7}, {3, 3}, 3, Precision::fp32), true);
  EXPECT_THROW(conv->workspace_bytes(ConvPass::backward_data), std::logic_error);
}

}  // namespace
}  // namespace stoker
