// The text of augmentations: what is read, what is written again, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "pipeline/augment.h"
#include "pipeline/augment/stages.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& text, Size output = {32, 32}) {
  return thrown_by<std::invalid_argument>([&] {
    const AugmentSpec spec(text, output);
    spec.validate_for({});
  });
}

TEST(AugmentGrammar, WritesTheShortestTextThatReadsBackAsTheSame) {
  const struct {
    const char* read;
    const char* written;
  } cases[] = {
      {"random_resized_crop(224)|flip", "random_resized_crop(224) | flip"},
      {" random_resized_crop ( size = 224 , scale = ( 0.08 , 1.0 ) ) ", "random_resized_crop(224)"},
      {"random_resized_crop((192, 224), scale=(.35,1))",
       "random_resized_crop((192, 224), scale=(0.35, 1))"},
      {"random_resized_crop(filter='bicubic') | flip(p=0.5)",
       "random_resized_crop(filter='bicubic') | flip"},
      {"resize(256) | center_crop()", "resize(size=256) | center_crop"},
      {"random_augment(2, 9) | random_augment(2, 10, fill=(1, 2, 3))",
       "random_augment | random_augment(magnitude=10, fill=(1, 2, 3))"},
      {"random_apply(color_jitter(0.4, 0.4, 0.2, 0.1) | grayscale, p=0.8)",
       "random_apply(color_jitter(brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1) | "
       "grayscale, p=0.8)"},
      {"random_choice(flip, invert | equalize, random_order(flip | invert), weights=(1, 2, 3))",
       "random_choice(flip, invert | equalize, random_order(flip | invert), weights=(1, 2, 3))"},
      {"posterize(4, p=0.25) | solarize(128) | cutout(8, value=0)",
       "posterize(4, p=0.25) | solarize(128) | cutout(8, value=0)"},
      {"random_crop(padding=(4,), pad_if_needed=True)",
       "random_crop(padding=4, pad_if_needed=True)"},
      {"color_jitter(brightness=(0.5, 1.5))", "color_jitter(brightness=(0.5, 1.5))"},
      {"resize_center_crop(48, 40)", "resize_center_crop(short=48, size=40)"},
  };
  for (const auto& [read, written] : cases) {
    const StageList list(read);
    EXPECT_EQ(list.describe(), written);
    EXPECT_EQ(StageList(written).describe(), written);
  }
}

// Every stage with its required arguments only: it describes itself by them, and can be drawn.
TEST(AugmentGrammar, EveryStageReadsBackAndHasHelp) {
  for (const StageType* type : all_stages()) {
    // An operation needs a library (operation_test.cc), and the others are no stages of a list.
    if (type == &kOperation || type == &kMix || type == &kViews) continue;
    if (type == &kFiveCrop || type == &kTenCrop || type == &kPictures) continue;
    std::string arguments;
    int number = 0;
    for (const Parameter& parameter : type->parameters) {
      if (parameter.otherwise) continue;
      ++number;  // of random_resize, the second must be larger
      arguments += std::string(arguments.empty() ? "" : ", ") +
                   (parameter.kind == ArgumentKind::stages   ? "flip | invert"
                    : parameter.kind == ArgumentKind::choice ? "'top_left'"
                    : parameter.kind == ArgumentKind::text   ? "'rand-m9'"
                                                             : std::to_string(number));
    }
    const std::string text =
        arguments.empty() ? type->name : std::string(type->name) + "(" + arguments + ")";
    EXPECT_EQ(StageList(text).describe(), text);
    EXPECT_GT(std::string(type->help).size(), 10u) << type->name;
    EXPECT_EQ(find_stage(type->name), type);
  }
  EXPECT_EQ(find_stage("no_such_stage"), nullptr);
}

TEST(AugmentGrammar, RefusesWhatIsNoListWithTheColumn) {
  EXPECT_THAT(refusal_of(""), HasSubstr("column 1 of '': expected a name"));
  EXPECT_THAT(refusal_of("flip |"), HasSubstr("column 7 of 'flip |': expected a name"));
  EXPECT_THAT(refusal_of("flip flip"), HasSubstr("column 6"));
  EXPECT_THAT(refusal_of("flip(p=)"), HasSubstr("column 8 of 'flip(p=)': expected a number"));
  EXPECT_THAT(refusal_of("flip(p=0.5"), HasSubstr("column 11 of 'flip(p=0.5': expected ')'"));
  EXPECT_THAT(refusal_of("flip(p=inf)"), HasSubstr("p is 'inf', must be a number"));
  EXPECT_THAT(refusal_of("flip(p=1e999)"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal_of("flip(p='0.5)"), HasSubstr("expected a closing '"));
  EXPECT_THAT(refusal_of("flip\x01"), HasSubstr("'flip\\x01'"));
  std::string deep = "flip";
  for (int i = 0; i < 100; ++i) deep = "random_apply(" + deep + " | flip)";
  EXPECT_THAT(refusal_of(deep), HasSubstr("no more than 16 lists in lists"));
  EXPECT_THAT(refusal_of(std::string(70000, ' ')), HasSubstr("a text of 70000 characters"));
}

TEST(AugmentGrammar, RefusesArgumentsNamingStageArgumentAndValue) {
  EXPECT_THAT(refusal_of("jiggle(3)"),
              AllOf(HasSubstr("there is no stage jiggle; there are random_resized_crop, "),
                    HasSubstr("random_erasing")));
  EXPECT_EQ(refusal_of("posterize(9)"), "augment: posterize: bits is 9, must be 1 to 8");
  // Pillow refuses 0, too.
  EXPECT_EQ(refusal_of("posterize(0)"), "augment: posterize: bits is 0, must be 1 to 8");
  EXPECT_EQ(refusal_of("trim_border(-1)"),
            "augment: trim_border: border is -1, must be 0 to 16384");
  EXPECT_THAT(refusal_of("resize_keep_ratio(8, longest=2)"), HasSubstr("longest is 2, must be 0"));
  EXPECT_THAT(refusal_of("resize_keep_ratio(8, scale=(0, 1))"), HasSubstr("must be above 0"));
  EXPECT_THAT(refusal_of("resize_keep_ratio(8, aspect=(0, 1))"), HasSubstr("must be above 0"));
  EXPECT_THAT(refusal_of("center_crop(8, mode=near)"), HasSubstr("mode is 'near', must be one of"));
  EXPECT_EQ(refusal_of("posterize(2.5)"),
            "augment: posterize: bits is 2.5, must be a whole number");
  EXPECT_EQ(refusal_of("posterize"), "augment: posterize needs bits: a whole number");
  EXPECT_EQ(refusal_of("posterize(4, bits=4)"), "augment: posterize: bits is given twice");
  EXPECT_EQ(refusal_of("flip(speed=4)"), "augment: flip has no speed; it has alternating, p");
  EXPECT_EQ(refusal_of("invert(1, 2)"), "augment: invert has no argument 2; it has p");
  EXPECT_EQ(refusal_of("random_resized_crop(scale=(0.5, 0.25))"),
            "augment: random_resized_crop: scale is (0.5, 0.25), must be (least, most), in this "
            "order");
  EXPECT_EQ(refusal_of("random_resized_crop(scale=(0, 1))"),
            "augment: random_resized_crop: scale is (0, 1), must be above 0 and at most 1");
  EXPECT_EQ(refusal_of("random_resized_crop(ratio=(0, 1))"),
            "augment: random_resized_crop: ratio is (0, 1), must be above 0 and at most 10000");
  EXPECT_EQ(refusal_of("random_resized_crop(filter=sinc)"),
            "augment: random_resized_crop: filter is 'sinc', must be one of bilinear, bicubic, "
            "nearest, box, hamming, lanczos");
  EXPECT_EQ(refusal_of("color_jitter(brightness=-0.1)"),
            "augment: color_jitter: brightness is -0.1, must be 0 to 1000");
  EXPECT_THAT(refusal_of("color_jitter(hue=0.6)"), HasSubstr("hue is 0.6, must be -0.5 to 0.5"));
  EXPECT_EQ(refusal_of("gaussian_blur(4)"),
            "augment: gaussian_blur: kernel_size is 4, must be odd");
  EXPECT_EQ(refusal_of("random_augment(2, 31)"),
            "augment: random_augment: magnitude is 31, must be less than num_magnitude_bins, 31");
  EXPECT_EQ(refusal_of("random_apply('flip')"),
            "augment: random_apply: stages must be stages, as in random_apply(flip | invert)");
  EXPECT_THAT(refusal_of("random_apply(flip, invert)"), HasSubstr("must be one list"));
  EXPECT_THAT(refusal_of("random_choice(flip, invert, weights=(1, 2, 3))"),
              HasSubstr("weights is (1, 2, 3), must be a number for each list"));
  EXPECT_THAT(refusal_of("flip(alternating=True, p=0.25)"), HasSubstr("p is 0.25, must be 0.5"));
  EXPECT_THAT(refusal_of("pad(1.5) | resize"), HasSubstr("padding is 1.5, must be whole numbers"));
  EXPECT_THAT(refusal_of("flip(alternating=yes)"), HasSubstr("must be True or False"));
  EXPECT_THAT(refusal_of("rotate(10, center=(1, 2, 3))"), HasSubstr("must be two numbers"));
  EXPECT_THAT(refusal_of("resize(100, max_size=100)"), HasSubstr("must be 0 or more than size"));
}

TEST(AugmentGrammar, RefusesListsThatCannotGiveRowsOfTheSize) {
  EXPECT_EQ(refusal_of("resize", {0, 32}), "augment: rows of 0x32 pixels; sides must be 1..32768");
  EXPECT_EQ(refusal_of("resize | center_crop(24)"),
            "augment: rows of 32x32 pixels, but 'resize | center_crop(24)' ends with images of "
            "24x24");
  EXPECT_THAT(refusal_of("flip"), HasSubstr("'flip' gives images of different sizes"));
  EXPECT_THAT(refusal_of("resize(40)"), HasSubstr("gives images of different sizes"));
  EXPECT_THAT(refusal_of("resize | rotate(10, expand=True)"), HasSubstr("different sizes"));
  EXPECT_THAT(refusal_of("random_apply(resize)"), HasSubstr("different sizes"));
  EXPECT_THAT(refusal_of("resize_center_crop(31)"),
              HasSubstr("short is 31, must be 0 or at least the row's longer side, 32"));
  EXPECT_EQ(refusal_of("resize_center_crop(32)"), "nothing was thrown");
  EXPECT_THAT(refusal_of("resize(16) | resize((16, 16)) | random_crop"),
              HasSubstr("32 x 32 pixels of an image of 16 x 16"));
  EXPECT_THAT(refusal_of("resize | random_crop(padding=32, mode=reflect)"),
              HasSubstr("random_crop: 32 pixels of padding with mode reflect on an image of 32"));
  EXPECT_EQ(refusal_of("resize | random_crop(padding=31, mode=reflect)"), "nothing was thrown");
  EXPECT_EQ(refusal_of("resize | random_crop(padding=32, mode=symmetric)"), "nothing was thrown");
  EXPECT_EQ(refusal_of("resize | random_crop(padding=32)"), "nothing was thrown");
  EXPECT_THAT(refusal_of("resize | cutout(33)"),
              HasSubstr("cutout: size is 33, must be inside the image of 32 x 32"));
  EXPECT_EQ(refusal_of("random_choice(resize, center_crop)"), "nothing was thrown");
  EXPECT_THAT(refusal_of("random_choice(resize, center_crop(16))"), HasSubstr("different sizes"));
}

TEST(AugmentSpec, TakesItsSizeFromTheListIfNoneIsGiven) {
  EXPECT_EQ(AugmentSpec("random_resized_crop((24, 32)) | flip").output, (Size{32, 24}));
  EXPECT_EQ(AugmentSpec("random_resized_crop((24, 32)) | flip").describe(),
            "output=32x24 random_resized_crop((24, 32)) | flip");
  EXPECT_THROW(AugmentSpec("resize | flip"), std::invalid_argument);
  // Raw images of the right size need no stage that gives one.
  const AugmentSpec flip("flip", {32, 32});
  flip.validate_for(Size{32, 32});
  EXPECT_THROW(flip.validate_for(Size{32, 31}), std::invalid_argument);
}

TEST(AugmentSpec, ReadsTheMixBehindTheStages) {
  const AugmentSpec spec("random_resized_crop(32) | flip | mix(cutmix=1, mixup=0.2, p=0.75)");
  EXPECT_EQ(spec.stages.describe(), "random_resized_crop(32) | flip");
  EXPECT_EQ(spec.mix, (MixSpec{.mixup_alpha = 0.2, .cutmix_alpha = 1, .probability = 0.75}));
  EXPECT_EQ(spec.stages_text(),
            "random_resized_crop(32) | flip | mix(mixup=0.2, cutmix=1, p=0.75)");
  EXPECT_EQ(AugmentSpec(spec.stages_text()).describe(), spec.describe());
  const AugmentSpec batch("resize | mix(mixup=1, switch_p=0.25, per_batch=True)", {8, 8});
  EXPECT_EQ(batch.mix, (MixSpec{.mixup_alpha = 1, .switch_probability = 0.25, .per_batch = true}));
  EXPECT_EQ(batch.stages_text(), "resize | mix(mixup=1, switch_p=0.25, per_batch=True)");
  EXPECT_EQ(refusal_of("resize | mix"),
            "augment: mix: mixup is 0, must be above 0, or cutmix must be");
  EXPECT_THAT(refusal_of("mix(mixup=1) | resize"), HasSubstr("mix must be the last stage"));
  EXPECT_THAT(refusal_of("resize | random_apply(mix(mixup=1))"), HasSubstr("must be the last"));
  EXPECT_THAT(refusal_of("resize | mix(mixup=1e-9)"), HasSubstr("mixup_alpha"));
}

TEST(AugmentSpec, ReadsViewsWithTheirSizes) {
  const AugmentSpec spec(
      "views(random_resized_crop(224) | flip, random_resized_crop(96), counts=(2, 3))");
  EXPECT_EQ(spec.views(), 5);
  EXPECT_EQ(spec.output, (Size{224, 224}));
  EXPECT_EQ(spec.view(0).stages.describe(), "random_resized_crop(224) | flip");
  EXPECT_EQ(spec.view(1).output, (Size{224, 224}));
  EXPECT_EQ(spec.view(4).output, (Size{96, 96}));
  EXPECT_EQ(spec.view(4).stages.describe(), "random_resized_crop(96)");
  EXPECT_EQ(spec.stages_text(),
            "views(random_resized_crop(224) | flip, random_resized_crop(96), counts=(2, 3))");
  const AugmentSpec same("views(random_resized_crop, counts=2)", {40, 30});
  EXPECT_EQ(same.view(1).output, (Size{40, 30}));
  EXPECT_EQ(same.stages_text(), "views(random_resized_crop, counts=2)");
  EXPECT_EQ(AugmentSpec("views(flip, invert)", {4, 4}).stages_text(),
            "views(flip, invert, counts=(1, 1))");
  EXPECT_THAT(refusal_of("views(resize) | flip"), HasSubstr("views must stand alone"));
  EXPECT_THAT(refusal_of("views"), HasSubstr("views needs stages: a list of stages"));
  EXPECT_THAT(refusal_of("views(resize, counts=(1, 2))"), HasSubstr("must be a number for each"));
  EXPECT_THAT(refusal_of("views(resize, counts=1.5)"), HasSubstr("must be whole numbers"));
  EXPECT_THAT(refusal_of("views(resize, resize, counts=(60, 5))"), HasSubstr("at most 64 in all"));
  EXPECT_THAT(refusal_of("views(resize, flip)"), HasSubstr("'flip' gives images of different"));
  AugmentSpec mixed("views(resize, counts=2)", {8, 8});
  mixed.mix.mixup_alpha = 1;
  EXPECT_THROW(mixed.validate(), std::invalid_argument);
}

TEST(AugmentSpec, ReadsCropsOfOneImageAsViews) {
  const AugmentSpec five("resize(16) | flip | five_crop((6, 8))");
  EXPECT_EQ(five.views(), 5);
  EXPECT_EQ(five.output, (Size{8, 6}));
  EXPECT_EQ(five.stages_text(), "resize(size=16) | flip | five_crop((6, 8))");
  EXPECT_EQ(five.view(3).stages.describe(),
            "resize(size=16) | flip | corner_crop('bottom_right', (6, 8))");
  EXPECT_EQ(five.view(4).stages.describe(), "resize(size=16) | flip | center_crop((6, 8))");
  EXPECT_EQ(AugmentSpec("five_crop(7)").view(1).stages.describe(), "corner_crop('top_right', 7)");
  const AugmentSpec ten("ten_crop(vertical_flip=True)", {8, 6});
  EXPECT_EQ(ten.views(), 10);
  EXPECT_EQ(ten.stages_text(), "ten_crop(vertical_flip=True)");
  EXPECT_EQ(ten.view(9).stages.describe(), "vertical_flip(p=1) | center_crop");
  EXPECT_EQ(ten.view(9).output, (Size{8, 6}));
  // The same lists with draws of their own are another augmentation.
  AugmentSpec apart = five;
  apart.crops.clear();
  EXPECT_NE(apart.describe(), five.describe());
  for (const char* list : {"five_crop(4) | flip", "random_apply(ten_crop(4))", "views(five_crop)",
                           "five_crop(4) | mix(1)"}) {
    EXPECT_THAT(refusal_of(list), HasSubstr("_crop must be the last stage, outside of other"));
  }
  EXPECT_THAT(refusal_of("five_crop(0)"), HasSubstr("five_crop: size is 0, must be 1 to 32768"));
}

TEST(AugmentSpec, OperationsAreNamedOnceInOneWordAndDescribed) {
  const auto nothing = [](MutableImageView, const RandomKey&) {};
  const auto refusal = [&](const std::vector<PixelOperation>& operations) -> std::string {
    AugmentSpec spec("resize", {8, 8});
    try {
      for (const PixelOperation& operation : operations) spec.add(operation);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return spec.describe();
  };
  EXPECT_EQ(refusal({{"a,p=0.5", nothing}, {"b", nothing}}),
            "output=8x8 resize | operation(a,p=0.5) | operation(b)");
  EXPECT_THAT(refusal({{"", nothing}}), HasSubstr("operation '': a name is"));
  EXPECT_THAT(refusal({{"a b", nothing}}), HasSubstr("operation 'a b'"));
  EXPECT_THAT(refusal({{"a\n", nothing}}), HasSubstr("operation 'a\\x0a'"));
  EXPECT_THAT(refusal({{"a", nothing}, {"a", nothing}}), HasSubstr("operation(a) is there twice"));
  AugmentSpec views("views(resize, resize | flip)", {8, 8});
  views.more_views[0].stages.add(operation_stage({"a", nothing}));
  EXPECT_NO_THROW(views.validate());
  views.more_views[0].stages.add(operation_stage({"a", nothing}));
  EXPECT_THROW(views.validate(), std::invalid_argument);
  EXPECT_THAT(refusal({{"a", nullptr}}), HasSubstr("'a' has no function"));
}

}  // namespace
}  // namespace stoker
