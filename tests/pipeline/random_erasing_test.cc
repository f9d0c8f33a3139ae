// The draws of random_erasing, and its noise.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/augment/erasing.h"
#include "pipeline/augment/pixel_steps.h"
#include "tests/pipeline/drawn_steps.h"

namespace stoker {
namespace {

// The ratio is height / width.
TEST(RandomErasing, HasItsDistributions) {
  const AugmentSpec spec(
      "random_erasing(p=0.25, scale=(0.1, 0.3), ratio=(0.5, 2), value=(1, 2, 3))", {20000, 20000});
  std::vector<double> areas, ratios, xs, ys;
  for (int64_t sample = 0; sample < 40000; ++sample) {
    const Drawn drawn = draw(spec, spec.output, sample);
    const PixelStep* step = drawn.find("fill");
    if (!step) continue;
    const auto [x, y, width, height] = crop_box(*step);
    EXPECT_EQ(step->fill, (Rgb{1, 2, 3}));
    areas.push_back(1.0 * width * height / 20000 / 20000);
    ratios.push_back(std::log(1.0 * height / width));
    xs.push_back(1.0 * x / (20000 - width));
    ys.push_back(1.0 * y / (20000 - height));
  }
  EXPECT_NEAR(static_cast<double>(areas.size()), 10000, 5 * 87);
  expect_uniform(areas, 0.1, 0.3);
  expect_uniform(ratios, std::log(0.5), std::log(2.0));
  expect_uniform(xs, 0, 1);
  expect_uniform(ys, 0, 1);
}

// As torchvision's, which leaves at least a row and a column.
TEST(RandomErasing, NeverErasesAWholeSide) {
  const AugmentSpec spec("random_erasing(p=1, scale=(0.6, 1), ratio=(0.5, 2))", {12, 12});
  int erased = 0;
  for (int64_t sample = 0; sample < 3000; ++sample) {
    const Drawn drawn = draw(spec, spec.output, sample);
    if (!drawn.find("fill")) continue;
    const Box box = crop_box(*drawn.find("fill"));
    ASSERT_TRUE(box.width < 12 && box.height < 12);
    ++erased;
  }
  EXPECT_GT(erased, 1000);
}

TEST(RandomErasing, NoiseIsNormalAndOfEachByteItsOwn) {
  const AugmentSpec spec(
      "random_erasing(p=1, scale=(0.9, 0.9), ratio=(1, 1), noise=True, mean=0.5, std=0.1)",
      {64, 64});
  Draws draws;
  draw_augmentation(spec, spec.output, 1, 0, 7, draws);
  ASSERT_EQ(draws.steps().size(), 1u);
  const PixelStep& step = draws.steps()[0];
  const Box box = crop_box(step);
  std::vector<uint8_t> row(3 * 64 * 64, 1);
  PixelScratch scratch;
  step.kind->change(step, {row.data(), 64, 64, 192}, scratch);
  double sum = 0, squares = 0, products = 0;
  int count = 0, untouched = 0;
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 192; ++x) {
      const auto at = static_cast<size_t>(192 * y + x);
      const bool inside =
          y >= box.y && y < box.y + box.height && x / 3 >= box.x && x / 3 < box.x + box.width;
      untouched += !inside && row[at] == 1;
      if (!inside) continue;
      const double value = row[at] - 127.5;
      sum += value;
      squares += value * value;
      if (x / 3 > box.x) products += value * (row[at - 1] - 127.5);
      ++count;
    }
  }
  EXPECT_EQ(count, 3 * box.width * box.height);
  EXPECT_EQ(untouched, 3 * (64 * 64 - box.width * box.height));
  EXPECT_NEAR(sum / count, 0, 5 * 25.5 / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(squares / count), 25.5, 1);
  EXPECT_NEAR(products / squares, 0, 5 / std::sqrt(count));
}

// The plain twin: value i of the box has bits of draw i / 5 (pipeline/augment/erasing.h).
void fill_plainly(const PixelStep& step, MutableImageView image) {
  const auto& noise = *static_cast<const ErasingNoise*>(step.object);
  const Box box = crop_box(step);
  for (int i = 0; i < 3 * box.width * box.height; ++i) {
    const int y = box.y + i / 3 / box.width, x = box.x + i / 3 % box.width;
    const uint64_t bits = step.key.bits(static_cast<uint32_t>(i / 5)) >> (i % 5 * 12);
    image.data[y * image.stride_bytes + 3 * x + i % 3] =
        noise[static_cast<size_t>(i % 3)][bits % 4096];
  }
}

TEST(RandomErasing, NoiseOfEveryBoxIsThatOfThePlainWay) {
  constexpr Size kRow{101, 67};
  constexpr ptrdiff_t kStride = 3 * kRow.width + 7;
  const AugmentSpec spec("random_erasing(p=1, noise=True)", kRow);
  Draws draws;
  PixelScratch scratch;
  int64_t sample = 0;
  // Less than a draw's bytes, odd and even lines, lines that begin within a draw, many draws.
  for (const int width : {1, 2, 3, 5, 16, 31, 64, 99, 100}) {
    for (const int height : {1, 2, 3, 7, 10, 33, 66}) {
      draw_augmentation(spec, kRow, 1, 0, ++sample, draws);
      ASSERT_EQ(draws.steps().size(), 1u);
      PixelStep step = draws.steps()[0];
      step.values = {double(kRow.width - width), double(kRow.height - height), double(width),
                     double(height)};
      std::vector<uint8_t> row(kStride * kRow.height, 1), expected = row;
      step.kind->change(step, {row.data(), kRow.width, kRow.height, kStride}, scratch);
      fill_plainly(step, {expected.data(), kRow.width, kRow.height, kStride});
      ASSERT_EQ(row, expected) << width << " x " << height;
    }
  }
}

}  // namespace
}  // namespace stoker
