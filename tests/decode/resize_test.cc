// The fast resize against its plain twin, on every instruction set of this machine.

// So that the list of instruction sets has the one with AVX-512 VNNI, which resize_kernels.cc uses.
#define HWY_WANT_AVX3_DL

#include <gtest/gtest.h>

#include <random>

#include "decode/pillow_resize.h"
#include "decode/resize/row_resizer.h"
#include "tests/decode/every_target.h"
#include "tests/decode/pixels.h"
#include "tests/support/pillow_reference.h"

namespace stoker {
namespace {

int draw_picture(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

CropSpec draw_spec(std::mt19937& random) {
  const int largest = draw_picture(random, 0, 9) == 0 ? 700 : 90;
  CropSpec s;
  s.crop = {0, 0, draw_picture(random, 1, largest), draw_picture(random, 1, largest)};
  s.resized = {draw_picture(random, 1, largest), draw_picture(random, 1, largest)};
  if (draw_picture(random, 0, 5) == 0) s.resized.width = s.crop.width;
  if (draw_picture(random, 0, 5) == 0) s.resized.height = s.crop.height;
  s.window.width = draw_picture(random, 1, s.resized.width);
  s.window.height = draw_picture(random, 1, s.resized.height);
  s.window.x = draw_picture(random, 0, s.resized.width - s.window.width);
  s.window.y = draw_picture(random, 0, s.resized.height - s.window.height);
  if (draw_picture(random, 0, 1) == 0) s.window = {0, 0, s.resized.width, s.resized.height};
  s.flip = draw_picture(random, 0, 1) == 1;
  s.filter = static_cast<Filter>(draw_picture(random, 0, kFilterCount - 1));
  return s;
}

std::string text(const CropSpec& s) {
  const auto pair = [](int a, int b) { return std::to_string(a) + "x" + std::to_string(b) + " "; };
  return pair(s.crop.width, s.crop.height) + "-> " + pair(s.resized.width, s.resized.height) +
         "window " + pair(s.window.width, s.window.height) + "at " + pair(s.window.x, s.window.y) +
         (s.flip ? "flip " : "") + "filter " + std::to_string(static_cast<int>(s.filter));
}

using ResizeOnTarget = EveryTarget;

TEST_P(ResizeOnTarget, EqualsThePlainTwin) {
  std::mt19937 random(7);
  PillowResize resize, resize12(PixelPolicy::exact_pillow12);
  int vertical = 0;
  for (int i = 0; i < 400; ++i) {
    const CropSpec spec = draw_spec(random);
    const Pixels source = noise({spec.crop.width, spec.crop.height}, i, i % 5);
    Pixels fast({spec.window.width, spec.window.height}, i % 7);
    Pixels plain({spec.window.width, spec.window.height});
    for (const PixelPolicy policy : {PixelPolicy::exact, PixelPolicy::exact_pillow12}) {
      (policy == PixelPolicy::exact ? resize : resize12).run(source.view(), spec, fast.view());
      pillow_resize_reference(source.view(), spec, plain.view(), policy);
      ASSERT_EQ(fast.packed(), plain.packed()) << to_string(policy) << " " << text(spec);
      ASSERT_TRUE(fast.gaps_intact()) << text(spec);
    }
    vertical += pass_order(PixelPolicy::exact, spec) == PassOrder::vertical_first;
  }
  EXPECT_GT(vertical, 50);
}

// Black and white extremes: weights overshoot, and sums must clip, not wrap.
TEST_P(ResizeOnTarget, ClipsOvershoot) {
  PillowResize resize;
  Pixels source({40, 40});
  for (int y = 0; y < 40; ++y) {
    for (int i = 0; i < 120; ++i) source.pixel(0, y)[i] = (i / 9 + y / 3) % 2 ? 255 : 0;
  }
  for (const int width : {7, 39, 41, 130}) {
    for (const int height : {7, 39, 41, 130}) {
      for (const Filter filter : {Filter::bicubic, Filter::lanczos}) {
        const CropSpec spec = {
            {0, 0, 40, 40}, {width, height}, {0, 0, width, height}, false, filter};
        Pixels fast({width, height}), plain({width, height});
        resize.run(source.view(), spec, fast.view());
        pillow_resize_reference(source.view(), spec, plain.view());
        EXPECT_EQ(fast.packed(), plain.packed()) << text(spec);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ResizeOnTarget, every_target(), target_name);

// Rows may come in portions of any size.
TEST(RowResizer, TheSizeOfThePortionsDoesNotMatter) {
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    const CropSpec spec = draw_spec(random);
    const Pixels source = noise({spec.crop.width, spec.crop.height}, i);
    Pixels whole({spec.window.width, spec.window.height});
    Pixels portions({spec.window.width, spec.window.height});
    PillowResize().run(source.view(), spec, whole.view());
    RowResizer resizer(PixelPolicy::exact);
    const Box needed = resizer.begin(spec, portions.view());
    for (int y = 0; y < needed.height;) {
      const int count = std::min(draw_picture(random, 1, 40), needed.height - y);
      resizer.rows(source.pixel(needed.x, needed.y + y), source.view().stride_bytes, count);
      y += count;
    }
    ASSERT_EQ(portions.packed(), whole.packed()) << text(spec);
  }
}

// Only the part that begin() requests may affect the result.
TEST(RowResizer, AsksForAllThatItNeeds) {
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    const CropSpec spec = draw_spec(random);
    Pixels source = noise({spec.crop.width, spec.crop.height}, i);
    Pixels before({spec.window.width, spec.window.height});
    Pixels after({spec.window.width, spec.window.height});
    PillowResize().run(source.view(), spec, before.view());
    const Box needed = RowResizer(PixelPolicy::exact).begin(spec, after.view());
    for (int y = 0; y < spec.crop.height; ++y) {
      for (int x = 0; x < spec.crop.width; ++x) {
        const bool inside = x >= needed.x && x < needed.x + needed.width && y >= needed.y &&
                            y < needed.y + needed.height;
        if (!inside) source.pixel(x, y)[i % 3] ^= 0xff;
      }
    }
    pillow_resize_reference(source.view(), spec, after.view());
    ASSERT_EQ(before.packed(), after.packed()) << text(spec);
  }
}

TEST(RowResizer, MemoryDoesNotGrowWithTheHeight) {
  Pixels out({224, 224});
  for (const PixelPolicy policy : {PixelPolicy::exact, PixelPolicy::exact_pillow12}) {
    RowResizer low(policy), high(policy);
    low.begin({{0, 0, 1000, 2'500}, {224, 224}, {0, 0, 224, 224}}, out.view());
    high.begin({{0, 0, 1000, 60'000}, {224, 224}, {0, 0, 224, 224}}, out.view());
    EXPECT_LT(high.scratch_bytes(), low.scratch_bytes() + (4 << 20)) << to_string(policy);
    EXPECT_LT(high.scratch_bytes(), 60'000 * 224 * 3 / 5) << to_string(policy);
  }
}

}  // namespace
}  // namespace stoker
