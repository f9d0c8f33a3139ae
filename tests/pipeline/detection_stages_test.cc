// The stages of detection and segmentation: what they draw, torchvision's crops about boxes for the
// same random numbers, and borders around what a decoder makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/program.h"
#include "pipeline/files/digest.h"
#include "tests/pipeline/drawn_steps.h"
#include "tests/support/hsv_reference.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

constexpr int kSamples = 2000;

// With rows of the size that the list ends with, if it says one.
AugmentSpec spec_with_rows(const std::string& list, Size rows = {64, 64}) {
  return AugmentSpec(list, StageList(list).size({}, rows).value_or(rows));
}

// The steps of a list for an image, as a text.
std::string drawn_text(const std::string& list, Size image, int64_t sample = 0,
                       Size output = {64, 64}) {
  return steps_text(draw(spec_with_rows(list, output), image, sample).steps);
}

// The numbers of the first step of this name in each sample.
std::vector<std::array<double, 8>> numbers_of_steps(const std::string& list, const char* name,
                                                    Size image) {
  std::vector<std::array<double, 8>> numbers;
  const AugmentSpec spec = spec_with_rows(list);
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    const Drawn drawn = draw(spec, image, sample);
    if (const PixelStep* step = drawn.find(name)) numbers.push_back(step->values);
  }
  return numbers;
}

std::vector<std::array<double, 4>> boxes_of_crops(const std::string& list, Size image) {
  std::vector<std::array<double, 4>> boxes;
  for (const auto& n : numbers_of_steps(list, "crop", image))
    boxes.push_back({n[0], n[1], n[2], n[3]});
  return boxes;
}

std::string failure_of(const std::string& list, Size image, Size output) {
  Draws draws;
  draw_augmentation(spec_with_rows(list, output), image, 1, 0, 0, draws);
  return draws.failure();
}

std::optional<Size> size_after(const std::string& list, std::optional<Size> before,
                               Size output = {}) {
  return StageList(list).size(before, output);
}

TEST(RandomShortestSize, ChoosesOneOfTheSizes) {
  std::map<std::string, int> seen;
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    ++seen[drawn_text("random_shortest_size((240, 300, 600), 700)", {640, 480}, sample)];
  }
  // 600 would make the long side 800.
  EXPECT_THAT(seen,
              ElementsAre(::testing::Pair(HasSubstr("resize(width=320, height=240"), Ge(550)),
                          ::testing::Pair(HasSubstr("resize(width=400, height=300"), Ge(550)),
                          ::testing::Pair(HasSubstr("resize(width=700, height=525"), Ge(550))));
}

TEST(RandomShortestSize, CutsOffFractions) {
  EXPECT_THAT(drawn_text("random_shortest_size(333)", {375, 500}),
              HasSubstr("width=333, height=444"));
  EXPECT_THAT(drawn_text("random_shortest_size(8)", {3, 1000}), HasSubstr("width=8, height=2666"));
  EXPECT_THAT(drawn_text("random_shortest_size(8, 9)", {3, 1000}), HasSubstr("width=1, height=9"));
  EXPECT_EQ(size_after("random_shortest_size(8)", Size{3, 1000}), (Size{8, 2666}));
  EXPECT_EQ(size_after("random_shortest_size((8, 9))", Size{3, 1000}), std::nullopt);
  EXPECT_THROW(StageList("random_shortest_size(8.5)"), std::invalid_argument);
}

TEST(ScaleJitter, FitsIntoTheSizeTimesAFactor) {
  EXPECT_THAT(drawn_text("scale_jitter((100, 300), scale_range=1)", {600, 400}),
              HasSubstr("width=150, height=100"));
  EXPECT_THAT(drawn_text("scale_jitter(scale_range=1)", {600, 400}, 0, {300, 250}),
              HasSubstr("width=300, height=200"));
  std::vector<double> factors;
  for (const auto& size : numbers_of_steps("scale_jitter(10000)", "resize", {30000, 20000})) {
    factors.push_back(size[0] / 10000);
    EXPECT_NEAR(size[0] / size[1], 1.5, 2 / size[1]);
  }
  expect_uniform(factors, 0.1, 2);
  EXPECT_EQ(size_after("scale_jitter(100)", Size{30, 20}), std::nullopt);
}

TEST(RandomResize, HasAllShortSidesButTheLast) {
  std::set<std::string> seen;
  for (int64_t sample = 0; sample < 200; ++sample) {
    seen.insert(drawn_text("random_resize(4, 7)", {21, 10}, sample));
  }
  EXPECT_THAT(seen, ElementsAre(HasSubstr("width=10, height=5"), HasSubstr("width=12, height=6"),
                                HasSubstr("width=8, height=4")));
  EXPECT_THROW(StageList("random_resize(4, 4)"), std::invalid_argument);
  EXPECT_EQ(size_after("random_resize(4, 7)", Size{30, 20}), std::nullopt);
}

TEST(RandomSizeCrop, HasSidesOfRandomLengthsWithinTheImage) {
  std::vector<double> widths, heights, left, top;
  for (const auto& [x, y, width, height] :
       boxes_of_crops("random_size_crop(50, 600)", {400, 900})) {
    widths.push_back(width);
    if (width < 200) heights.push_back(height), left.push_back(x / (400 - width));
    top.push_back(y / (900 - height));
  }
  expect_uniform(widths, 50, 400);
  expect_uniform(heights, 50, 600);
  expect_uniform(left, 0, 1);
  expect_uniform(top, 0, 1);
}

TEST(RandomSizeCrop, KeepsASideThatIsShorterThanTheLeast) {
  for (const auto& [x, y, width, height] : boxes_of_crops("random_size_crop(50, 60)", {30, 90})) {
    EXPECT_THAT((std::array{x, width}), ElementsAre(0, 30));
    EXPECT_THAT(height, AllOf(Ge(50), Le(60)));
  }
  EXPECT_EQ(drawn_text("random_size_crop(50, 60)", {30, 40}),
            "crop(x=0, y=0, width=30, height=40)");
  EXPECT_EQ(size_after("random_size_crop(5, 6)", Size{30, 20}), std::nullopt);
  EXPECT_THROW(StageList("random_size_crop(6, 5)"), std::invalid_argument);
}

TEST(RandomZoomOut, PutsTheImageAtARandomPlaceOfALargerCanvas) {
  std::vector<double> canvas, left, top;
  for (const auto& sides : numbers_of_steps("random_zoom_out(9, p=1)", "pad", {1000, 2000})) {
    const double wide = sides[0] + sides[2], high = sides[1] + sides[3];
    canvas.push_back(1 + high / 2000);
    EXPECT_NEAR(high, 2 * wide, 2);
    if (wide > 500) left.push_back(sides[0] / wide), top.push_back(sides[1] / high);
  }
  expect_uniform(canvas, 1, 4);
  expect_uniform(left, 0, 1);
  expect_uniform(top, 0, 1);
  EXPECT_THAT(drawn_text("random_zoom_out((1, 2, 3), 2, p=1)", {10, 20}),
              AllOf(HasSubstr("mode='constant'"), HasSubstr("fill=(1, 2, 3)")));
  EXPECT_EQ(drawn_text("random_zoom_out(side_range=1, p=1)", {10, 20}), "");
}

TEST(RandomZoomOut, IsAppliedToHalfOfTheSamples) {
  const auto applied = numbers_of_steps("random_zoom_out(side_range=2)", "pad", {10, 20});
  EXPECT_NEAR(static_cast<double>(applied.size()), kSamples / 2.0, 120);
  EXPECT_EQ(size_after("random_zoom_out", Size{30, 20}), std::nullopt);
}

// --- random_iou_crop

Annotations boxes_at(const std::vector<std::array<double, 4>>& boxes) {
  Annotations annotations;
  for (const auto& box : boxes) annotations.objects.push_back({.box = box});
  return annotations;
}

// Draws a list for an image with boxes.
void draw_with(const std::string& list, const Annotations& annotations, Size image, int64_t sample,
               Draws& draws) {
  draws.carry(&annotations, 0);
  draw_augmentation(spec_with_rows(list), image, 1, 0, sample, draws);
  EXPECT_EQ(draws.failure(), "");
}

const std::vector<std::array<double, 4>> kBoxes{
    {10, 20, 60, 90}, {100, 30, 180, 60}, {150, 100, 158, 108}};
constexpr Size kImage{200, 120};

// RandomIoUCrop.make_params of torchvision, as it stands there, but for the random numbers: a round
// takes one for its option, and four for each of 40 trials. Empty: the whole image.
std::vector<double> iou_crop_twin(const std::vector<std::array<double, 4>>& boxes, Size image,
                                  const RandomKey& key) {
  const double options[] = {0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0};
  for (uint32_t draw = 0; draw < 256 * 161;) {
    const uint32_t round = draw;
    const double min_overlap = options[key.below(draw++, 7)];
    if (min_overlap >= 1.0) return {};
    for (int trial = 0; trial < 40; ++trial, draw = round + 1 + 4 * static_cast<uint32_t>(trial)) {
      const int new_w = static_cast<int>(image.width * (0.3 + (1.0 - 0.3) * key.uniform(draw)));
      const int new_h =
          static_cast<int>(image.height * (0.3 + (1.0 - 0.3) * key.uniform(draw + 1)));
      const double aspect_ratio = new_w / double(new_h);
      if (!(0.5 <= aspect_ratio && aspect_ratio <= 2.0)) continue;
      const int left = static_cast<int>((image.width - new_w) * key.uniform(draw + 2));
      const int top = static_cast<int>((image.height - new_h) * key.uniform(draw + 3));
      const int right = left + new_w, bottom = top + new_h;
      double most = -1;
      for (const auto& [x0, y0, x1, y1] : boxes) {
        const double cx = 0.5 * (x0 + x1), cy = 0.5 * (y0 + y1);
        if (!(left < cx && cx < right && top < cy && cy < bottom)) continue;
        const double w = std::max(0.0, std::min<double>(x1, right) - std::max<double>(x0, left));
        const double h = std::max(0.0, std::min<double>(y1, bottom) - std::max<double>(y0, top));
        const double area = (x1 - x0) * (y1 - y0) + double(new_w) * new_h;
        most = std::max(most, w * h / (area - w * h));
      }
      if (most < 0 || most < min_overlap) continue;
      return {double(left), double(top), double(new_w), double(new_h)};
    }
    draw = round + 161;
  }
  return {};
}

TEST(RandomIouCrop, IsTorchvisionsForTheSameNumbers) {
  const Annotations annotations = boxes_at(kBoxes);
  const uint64_t salt = text_digest("stoker stage random_iou_crop 0");
  Draws draws;
  int whole = 0;
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    draw_with("random_iou_crop", annotations, kImage, sample, draws);
    const std::vector<double> crop = iou_crop_twin(kBoxes, kImage, RandomKey(1 ^ salt, 0, sample));
    if (crop.empty()) {
      ++whole;
      ASSERT_THAT(draws.steps(), IsEmpty()) << sample;
      continue;
    }
    ASSERT_EQ(draws.steps().size(), 2u) << sample;
    for (const PixelStep& step : draws.steps()) {
      ASSERT_TRUE(std::equal(crop.begin(), crop.end(), step.values.begin())) << sample;
    }
    ASSERT_EQ(draws.steps()[0].kind, &kKeepCentersStep);
    ASSERT_EQ(draws.steps()[1].kind, &kCropStep);
  }
  EXPECT_THAT(whole, AllOf(Ge(kSamples / 10), Le(kSamples / 2)));
}

TEST(RandomIouCrop, BoxesAreInsideOrEmpty) {
  const Annotations annotations = boxes_at(kBoxes);
  Draws draws;
  for (int64_t sample = 0; sample < 200; ++sample) {
    draw_with("random_iou_crop | sanitize_boxes", annotations, kImage, sample, draws);
    EXPECT_GE(draws.boxes().size(), 1u) << "one has its centre inside";
    for (const AnnotatedObject& object : draws.boxes()) {
      EXPECT_THAT(object.box[2], Le(draws.size().width));
      EXPECT_THAT(object.box[3], Le(draws.size().height));
    }
  }
}

TEST(RandomIouCrop, SeesBoxesWhereTheStepsBeforeHaveMovedThem) {
  // Small, so that a crop that does not show it where it is now would be found.
  const Annotations annotations = boxes_at({{10, 10, 14, 14}});
  Draws draws;
  for (int64_t sample = 0; sample < 100; ++sample) {
    draw_with("flip(p=1) | random_iou_crop(sampler_options=0)", annotations, kImage, sample, draws);
    const Box crop = crop_box(draws.steps().back());
    EXPECT_LT(crop.x, 188);
    EXPECT_GT(crop.x + crop.width, 188);
  }
}

TEST(RandomIouCrop, WholeImagesAreLeftAlone) {
  Draws draws;
  draw_with("random_iou_crop(sampler_options=1)", boxes_at(kBoxes), kImage, 0, draws);
  EXPECT_THAT(draws.steps(), IsEmpty());
  draw_with("random_iou_crop(sampler_options=0)", boxes_at({}), kImage, 0, draws);
  EXPECT_THAT(draws.steps(), IsEmpty()) << "no objects";
  draw_with("random_iou_crop(sampler_options=0.9)", boxes_at({{1, 1, 2, 2}}), kImage, 0, draws);
  EXPECT_THAT(draws.steps(), IsEmpty()) << "no crop does";
  draw_with("random_iou_crop(sampler_options=0)", boxes_at({{0, 0, 1, 1}}), {1, 1}, 0, draws);
  EXPECT_THAT(draws.steps(), IsEmpty()) << "a crop of a share of one pixel";
}

TEST(RandomIouCrop, NeedsBoxes) {
  EXPECT_EQ(failure_of("random_iou_crop", kImage, {64, 64}),
            "random_iou_crop: the data have no boxes");
  EXPECT_THROW(StageList("random_iou_crop(0.5, 0.4)"), std::invalid_argument);
  EXPECT_THROW(StageList("random_iou_crop(min_aspect_ratio=3)"), std::invalid_argument);
}

// --- sizes

TEST(FixedSizeCrop, TakesTheSameShareOfBothSides) {
  std::vector<double> shares;
  for (const auto& box : numbers_of_steps("fixed_size_crop((100, 200))", "crop", {1200, 2100})) {
    shares.push_back(box[0] / 1000);
    EXPECT_NEAR(box[1], 2 * box[0], 2);
    EXPECT_EQ(box[2], 200);
    EXPECT_EQ(box[3], 100);
  }
  ASSERT_EQ(shares.size(), size_t{kSamples});
  expect_uniform(shares, 0, 1);
}

TEST(FixedSizeCrop, PadsAtTheRightAndTheBottom) {
  EXPECT_EQ(drawn_text("fixed_size_crop((30, 40), fill=7)", {30, 20}),
            "pad(left=0, top=0, right=10, bottom=10, mode='constant', fill=(7, 7, 7))");
  EXPECT_THAT(drawn_text("fixed_size_crop((30, 40), mode='edge')", {50, 20}),
              AllOf(HasSubstr("crop(x="), HasSubstr("y=0, width=40, height=20) | drop_empty_boxes"),
                    HasSubstr("pad(left=0, top=0, right=0, bottom=10, mode='edge'")));
  EXPECT_EQ(drawn_text("fixed_size_crop((30, 40))", {40, 30}), "");
  EXPECT_THAT(failure_of("fixed_size_crop((30, 40), mode='reflect')", {50, 10}, {64, 64}),
              HasSubstr("fixed_size_crop: 20 pixels of padding with mode reflect"));
  EXPECT_EQ(size_after("fixed_size_crop((30, 40))", {}), (Size{40, 30}));
  EXPECT_EQ(size_after("fixed_size_crop", {}, {5, 6}), (Size{5, 6}));
}

TEST(FixedSizeCrop, DropsObjectsOfWhichNothingIsLeft) {
  const Annotations annotations = boxes_at({{0, 0, 4, 4}, {96, 46, 100, 50}, {0, 0, 100, 50}});
  Draws draws;
  for (int64_t sample = 0; sample < 50; ++sample) {
    draw_with("fixed_size_crop((20, 90))", annotations, {100, 50}, sample, draws);
    for (const AnnotatedObject& object : draws.boxes()) {
      EXPECT_LT(object.box[0], object.box[2]);
      EXPECT_LT(object.box[1], object.box[3]);
    }
    EXPECT_EQ(draws.boxes().back().index, 2);
    EXPECT_LT(draws.boxes().size(), 3u) << "the crop cannot show both small ones";
    draw_with("fixed_size_crop((60, 110))", annotations, {100, 50}, sample, draws);
    EXPECT_EQ(draws.boxes().size(), 3u);
  }
}

TEST(Letterbox, FitsAndCentres) {
  EXPECT_EQ(drawn_text("letterbox(416)", {640, 480}),
            "resize(width=416, height=312, filter='bilinear') | pad(left=0, top=52, right=0, "
            "bottom=52, mode='constant', fill=(114, 114, 114))");
  EXPECT_EQ(drawn_text("letterbox(40, fill=0)", {10, 5}),
            "resize(width=40, height=20, filter='bilinear') | pad(left=0, top=10, right=0, "
            "bottom=10, mode='constant', fill=(0, 0, 0))");
  EXPECT_EQ(drawn_text("letterbox((30, 20))", {20, 30}), "");
}

TEST(Letterbox, AnOddPixelIsAtTheSecondSide) {
  EXPECT_THAT(drawn_text("letterbox(320)", {333, 500}),
              AllOf(HasSubstr("width=213, height=320"),
                    HasSubstr("pad(left=53, top=0, right=54, bottom=0")));
  EXPECT_THAT(drawn_text("letterbox(320)", {500, 331}),
              AllOf(HasSubstr("width=320, height=212"), HasSubstr("top=54, right=0, bottom=54")));
  EXPECT_THAT(drawn_text("letterbox(8)", {1000, 2}), HasSubstr("width=8, height=1"));
  EXPECT_THAT(drawn_text("letterbox(8)", {1000, 2}), HasSubstr("top=3, right=0, bottom=4"));
  EXPECT_EQ(size_after("letterbox(320)", {}), (Size{320, 320}));
}

TEST(PadToSize, AddsAtTheRightAndTheBottom) {
  EXPECT_EQ(drawn_text("pad_to_size", {30, 64}),
            "pad(left=0, top=0, right=34, bottom=0, mode='constant', fill=(0, 0, 0))");
  EXPECT_EQ(drawn_text("pad_to_size", {64, 64}), "");
  EXPECT_EQ(size_after("pad_to_size((30, 40))", Size{40, 3}), (Size{40, 30}));
  EXPECT_EQ(size_after("pad_to_size", Size{40, 3}), std::nullopt) << "of the rows";
}

TEST(PadToSize, ALargerImageIsRefusedWithItsSize) {
  const std::string problem = "pad_to_size: an image of 41 x 3 pixels, the size is 40 x 30";
  EXPECT_EQ(failure_of("pad_to_size", {41, 3}, {40, 30}), problem);
  try {
    size_after("pad_to_size((30, 40))", Size{41, 3});
    ADD_FAILURE();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(error.what(), "augment: " + problem);
  }
}

// --- colours

TEST(RandomPhotometricDistort, ChangesEachWithP) {
  std::map<std::string, int> seen;
  std::map<std::string, std::vector<double>> factors;
  int contrast_first = 0;
  const AugmentSpec spec("random_photometric_distort", {64, 64});
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    const Drawn drawn = draw(spec, {64, 64}, sample);
    for (const PixelStep& step : drawn.steps) {
      ++seen[step.kind->name];
      factors[step.kind->name].push_back(step.values[0]);
    }
    const PixelStep* contrast = drawn.find("contrast");
    const PixelStep* saturation = drawn.find("saturation");
    if (contrast && saturation && contrast < saturation) ++contrast_first;
  }
  for (const char* name : {"brightness", "contrast", "saturation", "hue"}) {
    EXPECT_NEAR(seen[name], kSamples / 2.0, 120) << name;
  }
  // One order in six is the channels' own.
  EXPECT_NEAR(seen["permute_channels"], kSamples * 5 / 12.0, 120);
  EXPECT_NEAR(contrast_first, kSamples / 8.0, 80);
  expect_uniform(factors["brightness"], 0.875, 1.125);
  expect_uniform(factors["contrast"], 0.5, 1.5);
  expect_uniform(factors["saturation"], 0.5, 1.5);
  expect_uniform(factors["hue"], -0.05, 0.05);
}

TEST(RandomPhotometricDistort, ChannelsComeInEveryOrder) {
  std::map<std::array<double, 3>, int> orders;
  for (const auto& n :
       numbers_of_steps("random_photometric_distort(p=1)", "permute_channels", {64, 64})) {
    ++orders[{n[0], n[1], n[2]}];
  }
  ASSERT_EQ(orders.size(), 5u);
  for (const auto& [order, count] : orders) {
    EXPECT_EQ(order[0] + order[1] + order[2], 3);
    EXPECT_NEAR(count, kSamples / 6.0, 100);
  }
  EXPECT_EQ(drawn_text("random_photometric_distort(p=0)", {64, 64}), "");
}

TEST(RandomHsv, GainsAreWhatNumbersReachToBothSides) {
  const auto drawn = numbers_of_steps("random_hsv(0.1, value=0.25)", "hsv", {64, 64});
  ASSERT_EQ(drawn.size(), size_t{kSamples});
  std::array<std::vector<double>, 3> numbers;
  for (const auto& each : drawn) {
    for (size_t i = 0; i < 3; ++i) numbers[i].push_back(each[i]);
  }
  expect_uniform(numbers[0], -0.1, 0.1);
  expect_uniform(numbers[1], 0.3, 1.7);
  expect_uniform(numbers[2], 0.75, 1.25);
  // Each has a draw of its own.
  const double hue = drawn[0][0] / 0.1, saturation = (drawn[0][1] - 1) / 0.7;
  const double value = (drawn[0][2] - 1) / 0.25;
  EXPECT_GT(
      std::min({std::abs(hue - saturation), std::abs(hue - value), std::abs(saturation - value)}),
      1e-3);
}

TEST(RandomHsv, GainsOfNothingLeaveThePixelsAlone) {
  EXPECT_EQ(drawn_text("random_hsv(0, 0, 0)", {64, 64}), "");
  EXPECT_EQ(drawn_text("random_hsv(p=0)", {64, 64}), "");
  EXPECT_THAT(drawn_text("random_hsv(0, 0, 0.1)", {64, 64}), HasSubstr("saturation=1, value="));
  EXPECT_THROW(StageList("random_hsv(1.1)"), std::invalid_argument);
}

TEST(HsvStep, HasOpenCvsPixels) {
  const std::vector<PixelStep> steps =
      draw(AugmentSpec("random_hsv(0.5, 1, 1)", {5, 1}), {5, 1}, 3).steps;
  ASSERT_EQ(steps.size(), 1u);
  const auto& n = steps[0].values;
  std::vector<uint8_t> bytes{255, 255, 255, 0, 0, 0, 200, 30, 90, 17, 203, 5, 1, 2, 254};
  std::vector<uint8_t> expected = bytes;
  PixelScratch scratch;
  steps[0].kind->change(steps[0], {bytes.data(), 5, 1, 15}, scratch);
  hsv_reference({expected.data(), 5, 1, 15}, {n[0], n[1], n[2]});
  EXPECT_EQ(bytes, expected);
}

TEST(PermuteChannels, EachIsMadeOfTheOneThatIsNamed) {
  for (const int width : {1, 5, 64, 333}) {
    const ptrdiff_t stride = 3 * width + 7;
    std::vector<uint8_t> bytes(static_cast<size_t>(stride) * 3);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 31 + i / 256);
    std::vector<uint8_t> expected = bytes;
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < width; ++x) {
        const size_t at = static_cast<size_t>(y * stride + 3 * x);
        expected[at] = bytes[at + 2];
        expected[at + 1] = bytes[at];
        expected[at + 2] = bytes[at + 1];
      }
    }
    permute_channels({bytes.data(), width, 3, stride}, {2, 0, 1});
    EXPECT_EQ(bytes, expected) << width;
  }
}

// --- steps that change no pixel, and borders

TEST(BoxSteps, AreNotInTheWayOfTheDecoder) {
  const Drawn drawn = draw(
      AugmentSpec("random_resized_crop | clamp_boxes | flip(p=1) | sanitize_boxes(2, 9)", {64, 64}),
      {100, 90}, 0);
  EXPECT_EQ(drawn.steps.size(), 5u);
  EXPECT_EQ(drawn.plan.steps, 5u);
  EXPECT_EQ(drawn.plan.crop.resized, (Size{64, 64}));
  EXPECT_TRUE(drawn.plan.crop.flip);
  EXPECT_THAT(
      steps_text(drawn.steps),
      HasSubstr("clamp_boxes | flip | sanitize_boxes(min_size=2, min_area=9, min_visibility=0)"));
  EXPECT_EQ(drawn_text("sanitize_boxes(min_visibility=0.1)", {64, 64}),
            "sanitize_boxes(min_size=1, min_area=1, min_visibility=0.1)");
  EXPECT_THROW(StageList("sanitize_boxes(0.5)"), std::invalid_argument);
  EXPECT_THROW(StageList("sanitize_boxes(min_visibility=1.1)"), std::invalid_argument);
}

TEST(BoxSteps, AreExplainedAsSuch) {
  const std::vector<std::string> lines = explain_augmentation(
      AugmentSpec("resize | clamp_boxes | grayscale | sanitize_boxes", {8, 8}));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("by the decoder"),
                                 "clamp_boxes: of boxes alone, no pixel changes",
                                 "grayscale: a pass of its own",
                                 "sanitize_boxes: of boxes alone, no pixel changes"));
}

// Where the image belongs that the steps after the decoder's begin with; `out` has room for rows of
// 64 x 64.
MutableImageView place_of(const std::string& list, Size image, MutableImageView out) {
  static Draws draws;
  draw_augmentation(AugmentSpec(list, {64, 64}), image, 1, 0, 0, draws);
  const DecodePlan plan = plan_decode(draws);
  StepRunner runner(PixelPolicy::exact, int64_t{1} << 24);
  std::string problem;
  const MutableImageView place =
      runner.begin(draws.steps().subspan(plan.steps),
                   {plan.crop.window.width, plan.crop.window.height}, out, problem);
  EXPECT_EQ(problem, "");
  return place;
}

TEST(Border, AnImageIsDecodedIntoTheRowInsideIt) {
  std::vector<uint8_t> bytes(size_t{3} * 64 * 64);
  const MutableImageView row{bytes.data(), 64, 64, ptrdiff_t{3} * 64};
  const MutableImageView place = place_of("letterbox | flip", {60, 20}, row);
  EXPECT_EQ(place.data, row.data + 21 * row.stride_bytes);
  EXPECT_EQ(place.stride_bytes, row.stride_bytes);
  EXPECT_EQ(place.width, 64);
  EXPECT_EQ(place.height, 21);
  const MutableImageView padded = place_of("invert | pad((3, 5, 7, 9)) | invert", {54, 50}, row);
  EXPECT_EQ(padded.data, row.data + 5 * row.stride_bytes + 9);
  EXPECT_EQ(padded.width, 54);
  // Other borders are made of the image's pixels, and others' places are not in the row.
  for (const char* list : {"pad((3, 5, 7, 9), mode='edge')", "rotate(9) | pad((3, 5, 7, 9))",
                           "pad((3, 5, 7, 9)) | rotate(9)"}) {
    const MutableImageView elsewhere = place_of(list, {54, 50}, row);
    EXPECT_TRUE(elsewhere.data < row.data || elsewhere.data >= row.data + bytes.size()) << list;
  }
}

}  // namespace
}  // namespace stoker
