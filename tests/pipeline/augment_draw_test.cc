// Draws of stages: torchvision's boxes for the same random numbers, and its distributions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/augment/pixel_steps.h"
#include "tests/pipeline/drawn_steps.h"

namespace stoker {
namespace {

// Calls check(line, numbers) for each line of a golden file; see make_augment_golden.py.
void for_each_golden_line(const std::string& name,
                          const std::function<void(const std::string&, std::istream&)>& check) {
  std::ifstream file(STOKER_GOLDEN_DIR "/pipeline/" + name);
  ASSERT_TRUE(file) << name;
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream numbers(line);
    check(line, numbers);
  }
  EXPECT_GT(lines, 500);
}

std::string step_text(const AugmentSpec& spec, Size source, int64_t sample, int64_t epoch = 0,
                      uint64_t seed = 1) {
  return steps_text(draw(spec, source, sample, epoch, seed).steps);
}

TEST(AugmentDraw, RandomResizedCropIsTorchvisionsForTheSameNumbers) {
  for_each_golden_line("random_resized_crop.txt", [](const std::string& line, std::istream& in) {
    Size source;
    Box box;
    uint64_t seed = 0;
    int64_t epoch = 0, sample = 0;
    double scale[2], ratio[2];
    in >> source.width >> source.height >> scale[0] >> scale[1] >> ratio[0] >> ratio[1] >> seed >>
        epoch >> sample >> box.x >> box.y >> box.width >> box.height;
    ASSERT_TRUE(in);
    // For one pixel and a ratio of 0.3 torchvision gives an empty box.
    box.width = std::max(box.width, 1);
    const AugmentSpec spec("random_resized_crop(224, scale=" + numbers_text({scale[0], scale[1]}) +
                           ", ratio=" + numbers_text({ratio[0], ratio[1]}) + ")");
    const CropSpec crop = draw(spec, source, sample, epoch, seed).plan.crop;
    EXPECT_EQ(crop.crop, box) << line;
    EXPECT_EQ(crop.resized, spec.output);
    EXPECT_EQ(crop.window, (Box{0, 0, 224, 224}));
  });
}

TEST(AugmentDraw, ResizeCenterIsTorchvisions) {
  for_each_golden_line("resize_center.txt", [](const std::string& line, std::istream& in) {
    Size source, output, resized;
    int x = 0, y = 0, shorter = 0;
    in >> source.width >> source.height >> shorter >> output.width >> output.height >>
        resized.width >> resized.height >> x >> y;
    ASSERT_TRUE(in);
    const std::string side = std::to_string(shorter);
    for (const std::string& list :
         {"resize_center_crop(" + side + ")", "resize(" + side + ") | center_crop"}) {
      const CropSpec crop = draw(AugmentSpec(list, output), source, 0).plan.crop;
      const Box whole{0, 0, source.width, source.height};
      const Box row{0, 0, output.width, output.height}, center{x, y, output.width, output.height};
      // A resize that changes nothing is left out.
      const bool kept = resized == source;
      EXPECT_EQ(crop.crop, kept ? center : whole) << line;
      EXPECT_EQ(crop.resized, kept ? output : resized) << line;
      EXPECT_EQ(crop.window, kept ? row : center) << line;
    }
  });
}

TEST(AugmentDraw, ResizeCenterDefaultsToTheUsualShortSide) {
  const struct {
    Size output;
    int shorter;
  } cases[] = {
      {{224, 224}, 256}, {{160, 160}, 182}, {{32, 32}, 36}, {{1, 1}, 1}, {{112, 224}, 256}};
  for (const auto& [output, shorter] : cases) {
    const AugmentSpec spec("resize_center_crop", output);
    EXPECT_EQ(draw(spec, {500, 400}, 0).plan.crop.resized.height, shorter);
  }
  const AugmentSpec spec("resize_center_crop", {224, 224});
  const CropSpec thread = draw(spec, {1, 178'956'970}, 0).plan.crop;
  EXPECT_EQ(thread.resized.width, 256);
  EXPECT_GT(thread.resized.height, 0);
  EXPECT_GE(thread.window.y, 0);
}

// torchvision 0.29: Resize(100, max_size=150), CenterCrop((200, 120)), RandomCrop with
// pad_if_needed.
TEST(AugmentDraw, SizesAreTorchvisions) {
  const auto last = [](const std::string& list, Size source, Size output) {
    return step_text(AugmentSpec(list, output), source, 0);
  };
  EXPECT_EQ(last("resize(100, max_size=150) | resize", {400, 200}, {8, 8}),
            "resize(width=150, height=75, filter='bilinear') | "
            "resize(width=8, height=8, filter='bilinear')");
  EXPECT_EQ(last("resize(100, max_size=150) | resize", {200, 160}, {8, 8}),
            "resize(width=125, height=100, filter='bilinear') | "
            "resize(width=8, height=8, filter='bilinear')");
  EXPECT_EQ(last("center_crop((200, 120))", {101, 250}, {120, 200}),
            "pad(left=9, top=0, right=10, bottom=0, mode='constant', fill=(0, 0, 0)) | "
            "crop(x=0, y=25, width=120, height=200)");
  EXPECT_THAT(last("random_crop(40, pad_if_needed=True, mode=edge, fill=9)", {30, 50}, {40, 40}),
              ::testing::StartsWith("pad(left=10, top=0, right=10, bottom=0, mode='edge', "
                                    "fill=(9, 9, 9)) | crop("));
  EXPECT_THAT(last("random_crop((40, 30), pad_if_needed=True)", {35, 25}, {30, 40}),
              ::testing::StartsWith("pad(left=0, top=15, right=0, bottom=15, mode='constant', "
                                    "fill=(0, 0, 0)) | crop("));
}

TEST(AugmentDraw, SizesAreTimms) {
  const auto drawn = [](const std::string& list, Size source, Size output) {
    return step_text(AugmentSpec(list, output), source, 0);
  };
  const std::string last = " | resize(width=8, height=8, filter='bilinear')";
  // Covers 40 x 30, lies inside it, and is halfway between the two ratios.
  EXPECT_EQ(drawn("resize_keep_ratio((30, 40)) | resize", {100, 60}, {8, 8}),
            "resize(width=50, height=30, filter='bilinear')" + last);
  EXPECT_EQ(drawn("resize_keep_ratio((30, 40), 1, 'box') | resize", {100, 60}, {8, 8}),
            "resize(width=40, height=24, filter='box')" + last);
  EXPECT_EQ(drawn("resize_keep_ratio((30, 40), 0.5) | resize", {100, 60}, {8, 8}),
            "resize(width=44, height=27, filter='bilinear')" + last);
  // A scale of 0.25 of the area is twice the side, and an aspect of 4 twice the width.
  EXPECT_EQ(drawn("resize_keep_ratio(30, scale_p=1, scale=0.5) | resize", {60, 60}, {8, 8}),
            "resize(width=15, height=15, filter='bilinear')" + last);
  EXPECT_EQ(drawn("resize_keep_ratio(30, scale_p=1, scale=0.25, scale_area=True) | resize",
                  {50, 50}, {8, 8}),
            "resize(width=60, height=60, filter='bilinear')" + last);
  EXPECT_EQ(drawn("resize_keep_ratio(30, aspect_p=1, aspect=4) | resize", {50, 50}, {8, 8}),
            "resize(width=60, height=15, filter='bilinear')" + last);
  EXPECT_EQ(drawn("resize_keep_ratio(1, longest=1) | resize", {5000, 1}, {8, 8}),
            "resize(width=1, height=1, filter='bilinear')" + last);
  EXPECT_EQ(drawn("trim_border(7) | resize", {100, 60}, {8, 8}),
            "crop(x=7, y=7, width=86, height=46)" + last);
  EXPECT_EQ(drawn("center_crop(20, mode='reflect')", {19, 40}, {20, 20}),
            "pad(left=0, top=0, right=1, bottom=0, mode='reflect', fill=(0, 0, 0)) | "
            "crop(x=0, y=10, width=20, height=20)");
  Draws draws;
  draw_augmentation(AugmentSpec("trim_border(30) | resize", {8, 8}), {100, 60}, 0, 0, 0, draws);
  EXPECT_EQ(draws.failure(), "trim_border: a border of 30 pixels is all of an image of 100 x 60");
  draw_augmentation(AugmentSpec("center_crop(20, mode='reflect')"), {5, 60}, 0, 0, 0, draws);
  EXPECT_THAT(draws.failure(), ::testing::StartsWith("center_crop: 8 pixels of padding"));
  EXPECT_THROW(AugmentSpec("trim_border(30) | resize", {8, 8}).validate_for(Size{100, 60}),
               std::invalid_argument);
}

// With the centre they are torchvision's FiveCrop.
TEST(AugmentDraw, CornersAreThoseOfTheImage) {
  const auto corner = [](const std::string& name) {
    return step_text(AugmentSpec("corner_crop('" + name + "', (20, 30))"), {100, 50}, 0);
  };
  EXPECT_EQ(corner("top_left"), "crop(x=0, y=0, width=30, height=20)");
  EXPECT_EQ(corner("top_right"), "crop(x=70, y=0, width=30, height=20)");
  EXPECT_EQ(corner("bottom_left"), "crop(x=0, y=30, width=30, height=20)");
  EXPECT_EQ(corner("bottom_right"), "crop(x=70, y=30, width=30, height=20)");
  Draws draws;
  draw_augmentation(AugmentSpec("corner_crop('top_left', 51)"), {100, 50}, 0, 0, 0, draws);
  EXPECT_EQ(draws.failure(), "corner_crop: 51 x 51 pixels of an image of 100 x 50");
}

// All keys come equally often: within 5 deviations.
template <typename Key>
void expect_even(const std::map<Key, int>& counts, size_t keys) {
  ASSERT_EQ(counts.size(), keys);
  int all = 0;
  for (const auto& [key, count] : counts) all += count;
  const double expected = static_cast<double>(all) / static_cast<double>(keys);
  for (const auto& [key, count] : counts) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
}

// The image is so large that pixels are fine, and the scale always fits: no try is rejected, so
// area and log ratio are uniform, and so is the corner.
TEST(AugmentDraw, RandomResizedCropHasItsDistributions) {
  const AugmentSpec spec("random_resized_crop(224, scale=(0.1, 0.5), ratio=(0.5, 2))");
  const Size source{20000, 20000};
  std::vector<double> areas, ratios, xs, ys;
  for (int64_t sample = 0; sample < 20000; ++sample) {
    const Box box = draw(spec, source, sample, 2).plan.crop.crop;
    areas.push_back(1.0 * box.width * box.height / 20000 / 20000);
    ratios.push_back(std::log(1.0 * box.width / box.height));
    xs.push_back(1.0 * box.x / (20000 - box.width));
    ys.push_back(1.0 * box.y / (20000 - box.height));
  }
  expect_uniform(areas, 0.1, 0.5);
  expect_uniform(ratios, std::log(0.5), std::log(2.0));
  expect_uniform(xs, 0, 1);
  expect_uniform(ys, 0, 1);
}

TEST(AugmentDraw, KeptRatiosHaveTheirDistributions) {
  const AugmentSpec spec(
      "resize_keep_ratio(10000, scale_p=0.5, scale=(0.5, 2), aspect_p=0.25, aspect=(0.25, 4)) | "
      "resize(size=(8, 8))");
  std::vector<double> scales, aspects;
  for (int64_t sample = 0; sample < 40000; ++sample) {
    const auto drawn = draw(spec, {30000, 30000}, sample);
    const PixelStep* step = drawn.find("resize");
    const double scale = std::sqrt(step->values[0] * step->values[1]) / 10000;
    const double aspect = std::log(step->values[0] / step->values[1]);
    if (std::abs(scale - 1) > 1e-3) scales.push_back(scale);
    if (std::abs(aspect) > 1e-3) aspects.push_back(aspect);
  }
  EXPECT_NEAR(static_cast<double>(scales.size()), 20000, 5 * 100 + 30);
  EXPECT_NEAR(static_cast<double>(aspects.size()), 10000, 5 * 87 + 10);
  expect_uniform(scales, 0.5, 2);
  expect_uniform(aspects, -std::log(4.0), std::log(4.0));
}

TEST(AugmentDraw, EveryCropLiesInsideTheImage) {
  const AugmentSpec spec("random_resized_crop", {8, 8});
  for (int width = 1; width < 40; width += 3) {
    for (int height = 1; height < 400; height = height * 3 / 2 + 1) {
      for (int64_t sample = 0; sample < 50; ++sample) {
        const Box box = draw(spec, {width, height}, sample).plan.crop.crop;
        ASSERT_TRUE(lies_inside(box, {width, height})) << width << " x " << height;
      }
    }
  }
}

TEST(AugmentDraw, PaddedCropsShiftEvenlyInBothDirections) {
  const AugmentSpec spec("random_crop(padding=2, mode=reflect)", {32, 32});
  std::map<std::pair<int, int>, int> counts;
  for (int64_t sample = 0; sample < 25000; ++sample) {
    const DecodePlan plan = draw(spec, {32, 32}, sample).plan;
    ++counts[{plan.shift_x, plan.shift_y}];
    ASSERT_LE(std::max(std::abs(plan.shift_x), std::abs(plan.shift_y)), 2);
  }
  expect_even(counts, 25);
}

TEST(AugmentDraw, FlipIsACoinOfEachEpoch) {
  const AugmentSpec fair("flip", {32, 32}), rare("flip(p=0.1)", {32, 32});
  const AugmentSpec vertical("vertical_flip(p=0.1)", {32, 32});
  int flips = 0, changes = 0, rare_flips = 0, vertical_flips = 0;
  for (int64_t sample = 0; sample < 10000; ++sample) {
    const bool first = draw(fair, {32, 32}, sample).find("flip");
    const bool second = draw(fair, {32, 32}, sample, 1).find("flip");
    flips += first + second;
    changes += first != second;
    rare_flips += draw(rare, {32, 32}, sample).find("flip") != nullptr;
    vertical_flips += draw(vertical, {32, 32}, sample).find("vertical_flip") != nullptr;
  }
  EXPECT_NEAR(flips, 10000, 5 * 71);
  EXPECT_NEAR(changes, 5000, 5 * 50);
  EXPECT_NEAR(rare_flips, 1000, 5 * 30);
  EXPECT_NEAR(vertical_flips, 1000, 5 * 30);
}

TEST(AugmentDraw, AlternatingFlipIsRandomOnceAndThenTheOppositeEveryEpoch) {
  const AugmentSpec spec("flip(alternating=True)", {32, 32});
  int flips = 0;
  for (int64_t sample = 0; sample < 10000; ++sample) {
    const bool first = draw(spec, {32, 32}, sample).find("flip");
    flips += first;
    for (int64_t epoch = 1; epoch < 5; ++epoch) {
      ASSERT_EQ(draw(spec, {32, 32}, sample, epoch).find("flip") != nullptr,
                first != (epoch % 2 == 1));
    }
  }
  EXPECT_NEAR(flips, 5000, 5 * 50);
}

TEST(AugmentDraw, CutoutLiesInsideAndReachesEveryEdge) {
  const AugmentSpec spec("resize | cutout(12)", {32, 20});
  std::map<int, int> xs, ys;
  for (int64_t sample = 0; sample < 21000; ++sample) {
    const Box box = crop_box(*draw(spec, {50, 50}, sample).find("fill"));
    ASSERT_EQ(box.width, 12);
    ASSERT_EQ(box.height, 12);
    ++xs[box.x];
    ++ys[box.y];
  }
  ASSERT_EQ(xs.rbegin()->first, 20);
  expect_even(xs, 21);
  expect_even(ys, 9);
}

TEST(AugmentDraw, JitterHasTorchvisionsRangesAndEveryOrder) {
  const AugmentSpec spec("color_jitter(0.4, contrast=1.5, saturation=(0.5, 0.75), hue=0.2)",
                         {8, 8});
  std::map<std::string, int> orders;
  std::map<std::string, std::vector<double>> factors;
  for (int64_t sample = 0; sample < 24000; ++sample) {
    std::string order;
    for (const PixelStep& step : draw(spec, {8, 8}, sample).steps) {
      order += step.kind->name[0];
      factors[step.kind->name].push_back(step.values[0]);
    }
    ++orders[order];
  }
  expect_uniform(factors["brightness"], 0.6, 1.4);
  expect_uniform(factors["contrast"], 0, 2.5);
  expect_uniform(factors["saturation"], 0.5, 0.75);
  expect_uniform(factors["hue"], -0.2, 0.2);
  expect_even(orders, 24);
  EXPECT_EQ(step_text(AugmentSpec("color_jitter", {8, 8}), {8, 8}, 0), "");
}

TEST(AugmentDraw, RangesAreUniform) {
  const AugmentSpec spec(
      "sharpness((0.5, 2)) | gaussian_blur((3, 5), sigma=(0.5, 1.5)) | pillow_blur((0.1, 2))",
      {32, 32});
  std::map<std::string, std::vector<double>> drawn;
  for (int64_t sample = 0; sample < 5000; ++sample) {
    const Drawn all = draw(spec, {32, 32}, sample);
    drawn["sharpness"].push_back(all.find("sharpness")->values[0]);
    drawn["sigma"].push_back(all.find("gaussian_blur")->values[2]);
    drawn["radius"].push_back(all.find("pillow_blur")->values[0]);
  }
  expect_uniform(drawn["sharpness"], 0.5, 2);
  expect_uniform(drawn["sigma"], 0.5, 1.5);
  expect_uniform(drawn["radius"], 0.1, 2);
  EXPECT_THAT(step_text(spec, {32, 32}, 0), ::testing::HasSubstr("kernel_x=5, kernel_y=3"));
}

TEST(AugmentDraw, ProbabilitiesChoicesAndOrdersAreWhatTheySay) {
  const AugmentSpec apply("random_apply(invert | equalize, p=0.3) | autocontrast(p=0.7)", {8, 8});
  const AugmentSpec choice("random_choice(invert, equalize, autocontrast, weights=(1, 2, 5))",
                           {8, 8});
  const AugmentSpec order("random_order(invert | equalize | autocontrast | grayscale)", {8, 8});
  std::map<std::string, int> applied, chosen, orders;
  for (int64_t sample = 0; sample < 24000; ++sample) {
    ++applied[step_text(apply, {8, 8}, sample)];
    ++chosen[step_text(choice, {8, 8}, sample)];
    ++orders[step_text(order, {8, 8}, sample)];
  }
  // They are drawn apart from each other.
  ASSERT_EQ(applied.size(), 4u);
  EXPECT_NEAR(applied["invert | equalize | autocontrast"], 24000 * 0.21, 5 * 63);
  EXPECT_NEAR(applied["invert | equalize"], 24000 * 0.09, 5 * 45);
  EXPECT_NEAR(applied["autocontrast"], 24000 * 0.49, 5 * 78);
  ASSERT_EQ(chosen.size(), 3u);
  EXPECT_NEAR(chosen["invert"], 3000, 5 * 52);
  EXPECT_NEAR(chosen["equalize"], 6000, 5 * 68);
  EXPECT_NEAR(chosen["autocontrast"], 15000, 5 * 75);
  expect_even(orders, 24);
}

// torchvision's RandomAffine and RandomPerspective: what they are drawn from shows in the matrix.
TEST(AugmentDraw, WarpsHaveTorchvisionsRanges) {
  const AugmentSpec moved("affine(0, translate=(0.1, 0.2))", {100, 100});
  const AugmentSpec scaled("affine(0, scale=(0.5, 2), center=(0, 0))", {100, 100});
  const AugmentSpec turned("rotate((10, 50), center=(0, 0))", {100, 100});
  const AugmentSpec sheared("affine(0, shear=(-30, 30, 10, 20), center=(0, 0))", {100, 100});
  std::map<int, int> xs, ys;
  std::vector<double> scales, angles, shears;
  for (int64_t sample = 0; sample < 20000; ++sample) {
    const PixelStep step = draw(moved, {100, 100}, sample).steps.at(0);
    ++xs[static_cast<int>(-step.values[2])];
    ++ys[static_cast<int>(-step.values[5])];
    scales.push_back(1 / draw(scaled, {100, 100}, sample).steps.at(0).values[0]);
    const PixelStep turn = draw(turned, {100, 100}, sample).steps.at(0);
    angles.push_back(std::atan2(-turn.values[1], turn.values[0]) * 180 / M_PI);
    // The inverse of a shear by x and y: a = 1 + tan x tan y, b = tan x, d = tan y (with signs).
    shears.push_back(std::atan(draw(sheared, {100, 100}, sample).steps.at(0).values[1]) * 180 /
                     M_PI);
  }
  expect_uniform(scales, 0.5, 2);
  expect_uniform(angles, 10, 50);
  expect_uniform(shears, -30, 30);
  // Rounded to whole pixels: the outermost ones come half as often.
  ASSERT_EQ(xs.size(), 21u);
  ASSERT_EQ(ys.size(), 41u);
  for (const auto& [x, count] : xs) EXPECT_NEAR(count, std::abs(x) == 10 ? 500 : 1000, 5 * 32);
  for (const auto& [y, count] : ys) EXPECT_NEAR(count, std::abs(y) == 20 ? 250 : 500, 5 * 23);
}

TEST(AugmentDraw, QuarterTurnsAreTransposes) {
  EXPECT_EQ(step_text(AugmentSpec("rotate((180, 180))", {8, 6}), {8, 6}, 0), "turn(quarters=2)");
  EXPECT_EQ(step_text(AugmentSpec("rotate((0, 0))", {8, 6}), {8, 6}, 0), "");
  EXPECT_EQ(step_text(AugmentSpec("rotate((90, 90), expand=True) | resize", {8, 6}), {8, 6}, 0),
            "turn(quarters=1) | resize(width=8, height=6, filter='bilinear')");
}

TEST(AugmentDraw, IsPureFromAnyThreadInAnyOrder) {
  const AugmentSpec spec(
      "random_resized_crop | random_augment | flip | color_jitter(0.4, hue=0.1) | cutout(8) | "
      "aug_mix | random_erasing(noise=True)",
      {32, 32});
  constexpr int kSamples = 1000;
  std::vector<std::string> forwards(kSamples), backwards(kSamples);
  const auto draw_one = [&](int i) { return step_text(spec, {300, 200}, i, 3, 9); };
  std::thread thread([&] {
    for (int i = kSamples - 1; i >= 0; --i) backwards[static_cast<size_t>(i)] = draw_one(i);
  });
  for (int i = 0; i < kSamples; ++i) forwards[static_cast<size_t>(i)] = draw_one(i);
  thread.join();
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(std::set<std::string>(forwards.begin(), forwards.end()).size(), 1000u);
}

// A stage's draws depend on how many of its name are before it, and on no other stage.
TEST(AugmentDraw, NoStageMovesTheDrawsOfAnother) {
  const auto drawn = [](const std::string& list) {
    return step_text(AugmentSpec(list, {32, 32}), {300, 200}, 5, 1);
  };
  const std::string crop = drawn("random_resized_crop"),
                    jitter = drawn("resize | color_jitter(0.4)");
  EXPECT_THAT(drawn("random_resized_crop | color_jitter(0.4) | solarize(128)"),
              ::testing::StartsWith(crop));
  const std::string factor = jitter.substr(jitter.find(" | "));
  EXPECT_THAT(drawn("random_resized_crop | solarize(9, p=0.99) | color_jitter(0.4)"),
              ::testing::EndsWith(factor));
  EXPECT_THAT(drawn("random_resized_crop | random_apply(color_jitter(0.4) | invert, p=1)"),
              ::testing::HasSubstr(factor));
  // A second one of the same name draws anew.
  const std::string twice = drawn("resize | color_jitter(0.4) | color_jitter(0.4)");
  EXPECT_NE(twice, jitter + factor);
  EXPECT_THAT(twice, ::testing::StartsWith(jitter));
}

}  // namespace
}  // namespace stoker
