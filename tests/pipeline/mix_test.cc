#include "pipeline/augment/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "decode/pixel_ops.h"
#include "pipeline/files/invalid_field.h"
#include "tests/pipeline/mixed_pixels.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

constexpr Size kMixSize{64, 48};

MixDraw drawn_mix(const MixSpec& spec, int64_t number) {
  return draw_mix(spec, kMixSize, 5, 3, number);
}

std::string mix_refusal(const MixSpec& spec) {
  return thrown_by<InvalidField>([&] { spec.validate(); });
}

TEST(MixSpec, NamesTheFieldAndItsValue) {
  EXPECT_EQ(mix_refusal({}), "nothing was thrown");
  EXPECT_EQ(mix_refusal({.mixup_alpha = 0.2, .cutmix_alpha = 1}), "nothing was thrown");
  EXPECT_EQ(mix_refusal({.mixup_alpha = -1}),
            "MixSpec: mixup_alpha = -1: must be 0 (off) or 0.001..1000");
  EXPECT_EQ(mix_refusal({.cutmix_alpha = 2000}),
            "MixSpec: cutmix_alpha = 2000: must be 0 (off) or 0.001..1000");
  EXPECT_EQ(mix_refusal({.cutmix_alpha = NAN}),
            "MixSpec: cutmix_alpha = nan: must be 0 (off) or 0.001..1000");
  EXPECT_EQ(mix_refusal({.probability = 1.5}), "MixSpec: probability = 1.5: must be 0..1");
  EXPECT_EQ(mix_refusal({.switch_probability = -0.5}),
            "MixSpec: switch_probability = -0.5: must be 0..1");
}

TEST(DrawMix, IsAFunctionOfItsArguments) {
  const MixSpec spec{.mixup_alpha = 0.4, .cutmix_alpha = 1};
  const auto differs = [&](const MixDraw& other) {
    const MixDraw own = drawn_mix(spec, 8);
    return own.kind != other.kind || own.own_share != other.own_share || !(own.box == other.box);
  };
  EXPECT_FALSE(differs(drawn_mix(spec, 8)));
  EXPECT_TRUE(differs(drawn_mix(spec, 9)));
  EXPECT_TRUE(differs(draw_mix(spec, kMixSize, 6, 3, 8)));
  EXPECT_TRUE(differs(draw_mix(spec, kMixSize, 5, 4, 8)));
  // Step 8 of an epoch has nothing to do with sample 8.
  EXPECT_TRUE(differs(drawn_mix({.mixup_alpha = 0.4, .cutmix_alpha = 1, .per_batch = true}, 8)));
}

// The draws themselves: they are in the pixels of every run. The boxes touch all four edges.
TEST(DrawMix, IsTheSameOnEveryMachine) {
  MixSpec spec{.mixup_alpha = 0.4, .cutmix_alpha = 1};
  EXPECT_EQ(drawn_mix(spec, 0).kind, MixKind::mixup);
  EXPECT_EQ(drawn_mix(spec, 0).own_share, 0x1.12p-3f);
  EXPECT_EQ(drawn_mix(spec, 2).kind, MixKind::cutmix);
  EXPECT_EQ(drawn_mix(spec, 2).own_share, 0x1.90d556p-1f);
  EXPECT_EQ(drawn_mix(spec, 2).box, (Box{0, 0, 23, 29}));
  EXPECT_EQ(drawn_mix(spec, 8).box, (Box{21, 0, 43, 36}));
  spec.per_batch = true;
  EXPECT_EQ(drawn_mix(spec, 0).box, (Box{16, 22, 42, 26}));
}

TEST(DrawMix, KindsComeAsOftenAsTheProbabilitiesSay) {
  const auto counts = [](const MixSpec& spec) {
    std::array<int, 3> count{};
    for (int i = 0; i < 20000; ++i) ++count[static_cast<size_t>(drawn_mix(spec, i).kind)];
    return count;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(counts({}), ElementsAre(20000, 0, 0));
  EXPECT_THAT(counts({.mixup_alpha = 1}), ElementsAre(0, 20000, 0));
  EXPECT_THAT(counts({.cutmix_alpha = 1}), ElementsAre(0, 0, 20000));
  EXPECT_THAT(counts({.mixup_alpha = 1, .probability = 0}), ElementsAre(20000, 0, 0));
  EXPECT_THAT(counts({.mixup_alpha = 1, .cutmix_alpha = 1, .switch_probability = 1}),
              ElementsAre(0, 0, 20000));
  const std::array<int, 3> both =
      counts({.mixup_alpha = 1, .cutmix_alpha = 1, .probability = 0.8, .switch_probability = 0.25});
  EXPECT_NEAR(both[0], 4000, 250);
  EXPECT_NEAR(both[1], 12000, 300);
  EXPECT_NEAR(both[2], 4000, 250);
}

TEST(DrawMix, MixupsSharesAreWholePartsOfBeta) {
  double sum = 0, squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const MixDraw draw = drawn_mix({.mixup_alpha = 0.8}, i);
    const double parts = static_cast<double>(draw.own_share) * kMixParts;
    ASSERT_EQ(parts, std::floor(parts));
    ASSERT_TRUE(parts >= 0 && parts <= kMixParts);
    EXPECT_EQ(draw.box, Box{});
    sum += draw.own_share;
    squares += (draw.own_share - 0.5) * (draw.own_share - 0.5);
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
  EXPECT_NEAR(squares / 20000, 1 / (4 * 2.6), 0.004);
}

// Compares with the mean over all centres and many lambdas, by the formula of torchvision's CutMix.
TEST(DrawMix, BoxesAreTorchvisions) {
  double expected = 0, column = 0;
  constexpr int kLambdas = 400;
  for (int i = 0; i < kLambdas; ++i) {
    const double r = 0.5 * std::sqrt(1 - (i + 0.5) / kLambdas);
    const int half_width = static_cast<int>(r * kMixSize.width);
    const int half_height = static_cast<int>(r * kMixSize.height);
    double widths = 0, heights = 0;
    for (int x = 0; x < kMixSize.width; ++x) {
      const int left = std::max(0, x - half_width),
                right = std::min(kMixSize.width, x + half_width);
      widths += right - left;
      column += static_cast<double>(left <= 3 && right > 3) / kMixSize.width / kLambdas *
                (half_height > 0);
    }
    for (int y = 0; y < kMixSize.height; ++y) {
      heights += std::min(kMixSize.height, y + half_height) - std::max(0, y - half_height);
    }
    expected += widths / kMixSize.width * heights / kMixSize.height / kLambdas;
  }
  double area = 0, with_column = 0;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    const MixDraw draw = drawn_mix({.cutmix_alpha = 1}, i);
    const Box& box = draw.box;
    ASSERT_TRUE(box.x >= 0 && box.width >= 0 && box.x + box.width <= kMixSize.width);
    ASSERT_TRUE(box.y >= 0 && box.height >= 0 && box.y + box.height <= kMixSize.height);
    const double share = static_cast<double>(box.width) * box.height;
    ASSERT_EQ(draw.own_share, static_cast<float>(1 - share / (kMixSize.width * kMixSize.height)));
    area += share / kDraws;
    with_column +=
        static_cast<double>(box.x <= 3 && box.x + box.width > 3 && box.height > 0) / kDraws;
  }
  EXPECT_NEAR(area, expected, 0.015 * expected);
  EXPECT_NEAR(with_column, column, 0.01);
}

using Pixels = std::vector<uint8_t>;

Pixels noise_row(Size size, uint32_t seed) {
  std::mt19937 random(seed);
  Pixels pixels(size_t{3} * size.width * size.height);
  for (uint8_t& value : pixels) value = static_cast<uint8_t>(random());
  return pixels;
}

TEST(MixRows, EachTakesItsPartnerAsItWas) {
  const MixSpec specs[] = {
      {}, {.mixup_alpha = 0.7}, {.cutmix_alpha = 1}, {.mixup_alpha = 0.7, .cutmix_alpha = 1}};
  // From rows that fit into one block to lines that alone are longer than a block.
  for (const Size size : {Size{1, 1}, Size{8, 8}, Size{64, 48}, Size{224, 224}, Size{5000, 3}}) {
    Pixels scratch;
    for (const MixSpec& first_spec : specs) {
      for (const MixSpec& second_spec : specs) {
        for (int64_t i = 0; i < 6; ++i) {
          const MixDraw first = draw_mix(first_spec, size, 1, 0, i);
          const MixDraw second = draw_mix(second_spec, size, 2, 0, i);
          const Pixels one = noise_row(size, 1), two = noise_row(size, 2);
          Pixels a = one, b = two;
          mix_rows(size, {a.data(), first}, {b.data(), second}, scratch);
          ASSERT_EQ(a, mixed_pixels(first, size, one, two)) << size.width << " " << i;
          ASSERT_EQ(b, mixed_pixels(second, size, two, one)) << size.width << " " << i;
        }
      }
    }
    EXPECT_EQ(static_cast<int64_t>(scratch.size()), mix_scratch_bytes(size));
  }
}

}  // namespace
}  // namespace stoker
