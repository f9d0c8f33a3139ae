#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "pipeline/augment.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(AugmentSpec spec) {
  if (spec.output == Size{}) spec.output = {32, 32};
  try {
    spec.validate();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AugmentSpec, RefusesNonsenseNamingTheFieldAndItsValue) {
  const auto rrc = CropMode::random_resized;
  EXPECT_EQ(refusal_of({}), "accepted");
  EXPECT_THAT(refusal_of({.output = {0, 32}}), HasSubstr("output = 0x32"));
  EXPECT_THAT(refusal_of({.crop = rrc, .scale_min = 0}), HasSubstr("scale = 0..1"));
  EXPECT_THAT(refusal_of({.crop = rrc, .scale_min = 0.5, .scale_max = 0.25}),
              HasSubstr("scale = 0.5..0.25"));
  EXPECT_THAT(refusal_of({.crop = rrc, .scale_max = std::nan("")}), HasSubstr("scale"));
  EXPECT_THAT(refusal_of({.crop = rrc, .ratio_min = 2, .ratio_max = 1}), HasSubstr("ratio = 2..1"));
  EXPECT_THAT(refusal_of({.resize_short = 31}), HasSubstr("resize_short = 31"));
  EXPECT_EQ(refusal_of({.resize_short = 32}), "accepted");
  EXPECT_THAT(refusal_of({.crop = CropMode::pad_random, .pad = 32}), HasSubstr("pad = 32"));
  EXPECT_THAT(refusal_of({.crop = CropMode::pad_random, .pad = -1}), HasSubstr("pad = -1"));
  EXPECT_EQ(refusal_of({.crop = CropMode::pad_random, .pad = 31}), "accepted");
  EXPECT_EQ(refusal_of({.crop = CropMode::pad_random, .pad = 32, .pad_mode = PadMode::zero}),
            "accepted");
  EXPECT_THAT(refusal_of({.cutout = 33}), HasSubstr("cutout = 33"));
  EXPECT_THAT(refusal_of({.brightness = -0.1}), HasSubstr("brightness = -0.1"));
  EXPECT_THAT(refusal_of({.contrast = std::nan("")}), HasSubstr("contrast = nan"));
  EXPECT_THAT(refusal_of({.saturation = INFINITY}), HasSubstr("saturation = inf"));
  EXPECT_THAT(refusal_of({.hue = 0.6}), HasSubstr("hue = 0.6"));
}

TEST(AugmentSpec, DescriptionTellsWhatMattersWithFullPrecision) {
  AugmentSpec spec{.output = {224, 160}, .crop = CropMode::random_resized};
  EXPECT_EQ(spec.describe(),
            "crop=random_resized output=224x160 scale=0.08..1 ratio=0.75..1.3333333333333333 "
            "filter=bilinear flip=none");
  AugmentSpec other = spec;
  other.scale_min = std::nextafter(0.08, 1);
  EXPECT_NE(other.describe(), spec.describe());
  other = spec;
  other.pad = 4;  // has no effect for this crop
  EXPECT_EQ(other.describe(), spec.describe());
  const AugmentSpec cifar{.output = {32, 32},
                          .crop = CropMode::pad_random,
                          .pad = 2,
                          .flip = FlipMode::alternating,
                          .cutout = 12,
                          .hue = 0.1};
  EXPECT_EQ(cifar.describe(),
            "crop=pad_random output=32x32 pad=2/reflect filter=bilinear flip=alternating "
            "cutout=12/127 jitter=0,0,0,0.1");
  EXPECT_THAT((AugmentSpec{.output = {224, 224}}).describe(), HasSubstr("short=256"));
}

TEST(AugmentSpec, OperationsAreNamedOnceInOneWordAndDescribed) {
  const auto nothing = [](MutableImageView, const RandomKey&) {};
  EXPECT_EQ(refusal_of({.operations = {{"a,p=0.5", nothing}, {"b", nothing}}}), "accepted");
  EXPECT_THAT(refusal_of({.operations = {{"", nothing}}}), HasSubstr("operations = ''"));
  EXPECT_THAT(refusal_of({.operations = {{"a b", nothing}}}), HasSubstr("operations = 'a b'"));
  EXPECT_THAT(refusal_of({.operations = {{"a\n", nothing}}}), HasSubstr("operations = 'a\\x0a'"));
  EXPECT_THAT(refusal_of({.operations = {{"a", nothing}, {"a", nothing}}}),
              HasSubstr("'a': is there twice"));
  EXPECT_THAT(refusal_of({.operations = {{"a", nullptr}}}), HasSubstr("'a': has no function"));
  EXPECT_EQ((AugmentSpec{.output = {8, 8},
                         .crop = CropMode::whole,
                         .operations = {{"a,p=0.5", nothing}, {"b", nothing}}})
                .describe(),
            "crop=whole output=8x8 filter=bilinear flip=none then=a,p=0.5 then=b");
}

}  // namespace
}  // namespace stoker
