// Shifts, flips and boxes against one-line definitions, on every instruction set of this machine.
// (golden_test.cc compares colour operations with torchvision.)
#include "decode/pixel_ops.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/decode/every_target.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

int reflected(int i, int size) { return i < 0 ? -i : i >= size ? 2 * size - 2 - i : i; }

// The definition in pixel_ops.h, pixel by pixel.
Pixels slow_shift_flip(const Pixels& source, int offset_x, int offset_y, bool flip, PadMode mode) {
  const Size size = source.size();
  Pixels out(size);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      int from_x = (flip ? size.width - 1 - x : x) + offset_x;
      int from_y = y + offset_y;
      const bool inside = from_x >= 0 && from_x < size.width && from_y >= 0 && from_y < size.height;
      if (!inside && mode == PadMode::zero) {
        std::fill_n(out.pixel(x, y), 3, uint8_t{0});
        continue;
      }
      from_x = reflected(from_x, size.width);
      from_y = reflected(from_y, size.height);
      std::copy_n(source.pixel(from_x, from_y), 3, out.pixel(x, y));
    }
  }
  return out;
}

std::vector<uint8_t> to_planes(const Pixels& image) {
  const std::vector<uint8_t> rgb = image.packed();
  std::vector<uint8_t> planes(rgb.size());
  const size_t plane = rgb.size() / 3;
  for (size_t i = 0; i < rgb.size(); ++i) planes[i % 3 * plane + i / 3] = rgb[i];
  return planes;
}

using ShiftOnTarget = EveryTarget;

TEST_P(ShiftOnTarget, EqualsTheDefinition) {
  std::mt19937 random(4);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 3000; ++i) {
    const Size size = i % 2 ? Size{32, 32} : Size{draw(1, 70), draw(1, 40)};
    const PadMode mode = draw(0, 1) ? PadMode::reflect : PadMode::zero;
    const int most = mode == PadMode::zero ? 80 : std::min(size.width, size.height) - 1;
    const int pad = std::min(most, i % 7 == 0 ? 80 : i % 7 == 1 ? 9 : 4);
    const int x = draw(-pad, pad), y = draw(-pad, pad);
    const bool flip = draw(0, 1) == 1;
    const Pixels source = noise(size, static_cast<uint32_t>(i), i % 5);
    const std::vector<uint8_t> expected = slow_shift_flip(source, x, y, flip, mode).packed();
    Pixels out(size, i % 3), from_planes(size, i % 3);
    shift_flip(source.view(), x, y, flip, mode, out.view());
    ASSERT_EQ(out.packed(), expected) << size.width << "x" << size.height << " " << x << "," << y;
    const std::vector<uint8_t> planes = to_planes(source);
    shift_flip_planar(planes.data(), size, x, y, flip, mode, from_planes.view());
    ASSERT_EQ(from_planes.packed(), expected)
        << size.width << "x" << size.height << " " << x << "," << y << " flip " << flip;
    ASSERT_TRUE(out.gaps_intact() && from_planes.gaps_intact());
  }
}

TEST_P(ShiftOnTarget, MirrorsRowsOfAnyWidth) {
  for (int width = 1; width < 80; ++width) {
    const Pixels source = noise({width, 1}, static_cast<uint32_t>(width));
    Pixels out({width, 1}, 16);
    copy_mirrored(source.pixel(0, 0), width, out.pixel(0, 0));
    Pixels in_place = source;
    flip_horizontal(in_place.view());
    EXPECT_EQ(out.packed(), slow_shift_flip(source, 0, 0, true, PadMode::zero).packed()) << width;
    EXPECT_EQ(out.packed(), in_place.packed());
    EXPECT_TRUE(out.gaps_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ShiftOnTarget, every_target(), target_name);

TEST(Turn, EqualsTheDefinition) {
  for (const Size size : {Size{1, 1}, {7, 1}, {1, 6}, {5, 4}, {33, 21}}) {
    const Pixels source = noise(size, 8, 3);
    for (int quarters = 0; quarters < 4; ++quarters) {
      Pixels out(quarters % 2 != 0 ? Size{size.height, size.width} : size, 2);
      turn(source.view(), quarters, out.view());
      EXPECT_TRUE(out.gaps_intact());
      for (int y = 0; y < size.height; ++y) {
        for (int x = 0; x < size.width; ++x) {
          const int right = size.width - 1 - x, below = size.height - 1 - y;
          const Size to[] = {{x, y}, {y, right}, {right, below}, {below, x}};
          const uint8_t* got = out.pixel(to[quarters].width, to[quarters].height);
          ASSERT_TRUE(std::equal(got, got + 3, source.pixel(x, y))) << quarters;
        }
      }
    }
  }
}

TEST(FlipVertical, ExchangesRows) {
  for (const int height : {1, 2, 7}) {
    const Pixels source = noise({9, height}, 5, 4);
    Pixels out = source;
    flip_vertical(out.view());
    EXPECT_TRUE(out.gaps_intact());
    for (int y = 0; y < height; ++y) {
      EXPECT_TRUE(std::equal(out.pixel(0, y), out.pixel(9, y), source.pixel(0, height - 1 - y)));
    }
  }
}

TEST(FillBox, IsClippedToTheImage) {
  for (const Box box : {Box{2, 3, 4, 2},
                        {-5, -5, 8, 7},
                        {7, 4, 100, 100},
                        {-3, -3, 50, 50},
                        {20, 0, 3, 3},
                        {0, -9, 5, 5},
                        {3, 3, 0, 4},
                        {5, 5, 2147483647, 1}}) {
    const Pixels source = noise({10, 8}, 3, 4);
    Pixels out = source;
    fill_box(out.view(), box, 77);
    EXPECT_TRUE(out.gaps_intact());
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 10; ++x) {
        const bool inside =
            x >= box.x && x - box.x < box.width && y >= box.y && y - box.y < box.height;
        for (int c = 0; c < 3; ++c) {
          ASSERT_EQ(out.pixel(x, y)[c], inside ? 77 : source.pixel(x, y)[c]) << x << "," << y;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker
