// Gradients of convolutions' weights in bf16 against plain loops in double precision.
#include "train/cpu/bf16_gradient.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "tests/train/engine_fixture.h"
#include "train/cpu/memory.h"
#include "train/cpu/micro_batch_net.h"

namespace stoker {
namespace {

std::vector<uint16_t> bf16_noise(uint32_t seed, int64_t count) {
  std::vector<uint16_t> values;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t draw = noise(seed, static_cast<uint32_t>(i));
    values.push_back(to_bf16(static_cast<float>(draw) / 2147483648.0f - 1.0f));
  }
  return values;
}

double number_of(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << 16); }

size_t place_in_blocks(const Bf16GradientShape& s, int place, int in, int out) {
  const size_t block = size_t(out) / 16 * (s.in_channels / 16) + in / 16;
  return ((block * s.kernel_height * s.kernel_width + place) * 16 + in % 16) * 16 + out % 16;
}

std::vector<double> by_loops(const Bf16GradientShape& s, const std::vector<uint16_t>& x,
                             const std::vector<uint16_t>& dy) {
  std::vector<double> sums(size_t(s.kernel_height) * s.kernel_width * s.in_channels *
                           s.out_channels);
  int64_t pixel = 0;
  for (int row = 0; row < s.rows; ++row) {
    for (int y = 0; y < s.out_height; ++y) {
      for (int out_x = 0; out_x < s.out_width; ++out_x, ++pixel) {
        for (int place = 0; place < s.kernel_height * s.kernel_width; ++place) {
          const int from_y = y * s.stride + place / s.kernel_width - s.padding_height;
          const int from_x = out_x * s.stride + place % s.kernel_width - s.padding_width;
          if (from_y < 0 || from_x < 0 || from_y >= s.in_height || from_x >= s.in_width) continue;
          const int64_t from = (int64_t{row} * s.in_height + from_y) * s.in_width + from_x;
          for (int i = 0; i < s.in_channels; ++i) {
            for (int o = 0; o < s.out_channels; ++o) {
              sums[place_in_blocks(s, place, i, o)] += number_of(x[from * s.in_channels + i]) *
                                                       number_of(dy[pixel * s.out_channels + o]);
            }
          }
        }
      }
    }
  }
  return sums;
}

TEST(Bf16GradientTest, IsTheSumOverThePixels) {
  if (!cpu_supports(Precision::bf16)) GTEST_SKIP() << "no bf16 instructions";
  const Bf16GradientShape shapes[] = {
      {1, 16, 32, 1, 1, 1, 1},      // a single pixel, which has no partner
      {3, 48, 32, 5, 3, 5, 3},      // an odd number of pixels
      {3, 16, 96, 17, 15, 17, 15},  // blocks of pixels, of which the last is odd, and ends in a row
      {2, 32, 64, 7, 6, 4, 3, 1, 1, 2},  // every second pixel
      {2, 16, 64, 9, 8, 5, 4, 3, 3, 2, 1, 1},
      {1, 32, 32, 6, 7, 6, 7, 3, 5, 1, 1, 2},
  };
  for (const Bf16GradientShape& shape : shapes) {
    ASSERT_TRUE(has_bf16_gradient(shape));
    const auto x =
        bf16_noise(1, int64_t{shape.rows} * shape.in_height * shape.in_width * shape.in_channels);
    const auto dy = bf16_noise(
        2, int64_t{shape.rows} * shape.out_height * shape.out_width * shape.out_channels);
    const std::vector<double> expected = by_loops(shape, x, dy);
    const CpuMemory scratch = float_memory(bf16_gradient_scratch(shape));
    std::vector<float> found(expected.size(), 7.0f);
    bf16_gradient(shape, x.data(), dy.data(), found.data(), scratch.floats().data());
    double error = 0, norm = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      error += (found[i] - expected[i]) * (found[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    EXPECT_LT(std::sqrt(error / norm), 1e-6) << shape.rows << " rows of " << shape.in_height;
  }
}

TEST(Bf16GradientTest, TakesChannelsThatFillItsTiles) {
  EXPECT_FALSE(has_bf16_gradient({.in_channels = 24, .out_channels = 32}));
  EXPECT_FALSE(has_bf16_gradient({.in_channels = 32, .out_channels = 48}));
}

}  // namespace
}  // namespace stoker
