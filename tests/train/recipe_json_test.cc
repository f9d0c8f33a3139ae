// Tests of the JSON text of a recipe, which every checkpoint contains: old checkpoints must be
// readable, and the same recipe must give the same text, byte for byte.
#include "train/model/recipe_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "pipeline/files/durable_file.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// No field has its default, so that a missing or swapped field is noticed.
Recipe unlike_any_default() {
  Recipe recipe;
  recipe.name = "resnet20";
  recipe.input = {40, 24};
  recipe.epochs = 9.9;
  recipe.batch = 96;
  recipe.micro_batch_size = 12;
  recipe.last_batch = LastBatch::wrap;
  recipe.train = AugmentSpec(
      "resize(filter='bicubic') | random_crop(padding=3) | flip(alternating=True) | "
      "color_jitter(0.1, 0.2, 0.3, 0.05) | cutout(5, value=9) | "
      "mix(mixup=0.2, cutmix=1.1, p=0.6, switch_p=0.7, per_batch=True)",
      recipe.input);
  recipe.eval = AugmentSpec("resize", recipe.input);
  recipe.mean = {0.1f, 0.2f, 0.3f};
  recipe.stddev = {0.4f, 0.5f, 0.6f};
  recipe.optimizer = {0.3, 512, 0.85, true, 1e-3, true, true, 64, false};
  recipe.schedule = {ScheduleKind::step, 0.25, 0.375, 0.0625, {0.5, 0.75}, 0.2, 1.5, 0.01};
  recipe.label_smoothing = 0.15;
  recipe.average = {AverageKind::lookahead, 5, 0.95, 3};
  recipe.zero_gamma = true;
  recipe.whitening = true;
  recipe.whiten_bias_epochs = 2;
  recipe.eval_views = 6;
  recipe.precision = Precision::bf16;
  return recipe;
}

std::string recipe_refusal(const Json& json) {
  try {
    recipe_from_json(json);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(RecipeJson, TextIsTheSameForEver) {
  const std::string golden = read_whole_file(STOKER_GOLDEN_DIR "/trainer/recipe.json");
  EXPECT_EQ(recipe_to_json(unlike_any_default()).dump(1) + "\n", golden);
  const Recipe back = recipe_from_json(Json::parse(golden));
  EXPECT_EQ(recipe_to_json(back).dump(1) + "\n", golden);
  EXPECT_EQ(back.mean, unlike_any_default().mean);
  EXPECT_EQ(back.train.output, back.input);
  EXPECT_EQ(back.eval.output, back.input);
}

// They came later: the text of a recipe without them is as it was.
TEST(RecipeJson, LaterFieldsAreWrittenWhereTheyHaveAnotherValue) {
  Recipe recipe = unlike_any_default();
  const Json before = recipe_to_json(recipe).at("optimizer");
  for (const char* name : {"kind", "beta1", "beta2", "epsilon", "trust", "clip_norm"}) {
    EXPECT_FALSE(before.contains(name)) << name;
  }
  recipe.optimizer.kind = OptimizerKind::adamw;
  recipe.optimizer.beta1 = 0.8;
  recipe.optimizer.beta2 = 0.95;
  recipe.optimizer.epsilon = 1e-5;
  recipe.optimizer.trust = 0.02;
  recipe.optimizer.clip_norm = 1.5;
  recipe.schedule.warmup_steps = 500;
  EXPECT_EQ(recipe_to_json(recipe).at("schedule").at("warmup_steps"), 500);
  EXPECT_FALSE(recipe_to_json(unlike_any_default()).at("schedule").contains("warmup_steps"));
  const Json json = recipe_to_json(recipe);
  EXPECT_EQ(json.at("optimizer").size(), before.size() + 6);
  const Recipe back = recipe_from_json(json);
  EXPECT_EQ(recipe_to_json(back), json);
  EXPECT_EQ(back.optimizer.kind, OptimizerKind::adamw);
  EXPECT_EQ(recipe_difference(unlike_any_default(), recipe, {"optimizer.beta1"}),
            "optimizer.beta2: 0.999 -> 0.95");
  EXPECT_EQ(recipe_difference(recipe, unlike_any_default(), {"optimizer.beta1"}),
            "optimizer.beta2: 0.95 -> 0.999");
}

// The text as it was before augmentations were lists of stages.
TEST(RecipeJson, ReadsTheRecipeOfAnOldCheckpoint) {
  const Json old = Json::parse(read_whole_file(STOKER_GOLDEN_DIR "/trainer/old_recipe.json"));
  const Recipe recipe = recipe_from_json(old);
  Recipe expected = unlike_any_default();
  expected.train.mix.switch_probability = 0.5;  // there was no other
  EXPECT_EQ(recipe_difference(expected, recipe), "");
  EXPECT_EQ(recipe.train.output, (Size{41, 25}));
  EXPECT_EQ(recipe.eval.output, (Size{42, 26}));
}

// Each comes from the config.json of a training of that time.
TEST(RecipeJson, ReadsEveryWayToCropOfOldCheckpoints) {
  const std::vector<std::string> expected = {
      "random_resized_crop(scale=(0.35, 1), ratio=(0.75, 1.7)) | flip | "
      "color_jitter(brightness=0.4, contrast=0.3)",
      "resize_center_crop(short=40, filter='bicubic')",
      "resize_center_crop | flip | cutout(5)",
      "resize | random_crop(padding=3) | flip | color_jitter(saturation=0.2, hue=0.1) | cutout(8)",
      "resize(filter='bicubic') | random_crop(padding=4, mode='reflect') | flip(alternating=True)",
      "resize | flip(alternating=True)"};
  const Json old =
      Json::parse(read_whole_file(STOKER_GOLDEN_DIR "/trainer/old_augmentations.json"));
  ASSERT_EQ(old.size(), expected.size());
  Json json = recipe_to_json(default_recipe("airnet"));
  for (size_t i = 0; i < expected.size(); ++i) {
    json["train"] = old[i];
    const Recipe recipe = recipe_from_json(json);
    EXPECT_EQ(recipe.train.stages.describe(), expected[i]);
    EXPECT_EQ(recipe.train.output, (Size{32, 32}));
    EXPECT_NO_THROW(recipe.validate());
  }
}

// They are code, which a checkpoint must not load.
TEST(RecipeJson, LeavesOperationsOfTheUsersOwnOut) {
  Recipe recipe = default_recipe("resnet20");
  const Json json = recipe_to_json(recipe);
  recipe.train.add({"mine", [](MutableImageView, const RandomKey&) {}});
  EXPECT_EQ(recipe_to_json(recipe), json);
  recipe.eval.stages = StageList();
  recipe.eval.add({"mine", [](MutableImageView, const RandomKey&) {}});
  EXPECT_EQ(recipe_to_json(recipe)["eval"], "");
  EXPECT_TRUE(recipe_from_json(recipe_to_json(recipe)).eval.stages.stages().empty());

  for (const char* stages : {"operation('/no/such.so')", "flip | operation ( path='/no/such.so')",
                             "random_apply(flip | operation('/no/such.so'))"}) {
    Json foreign = json;
    foreign["train"] = stages;
    EXPECT_EQ(recipe_refusal(foreign),
              std::string("recipe.train: operations are not loaded from a recipe: ") + stages);
  }
}

// A checkpoint of a version whose trainer mixed on its own, with one draw for each step.
TEST(RecipeJson, ReadsRecipesWithTheMixOutsideOfTheAugmentation) {
  Json old = Json::parse(read_whole_file(STOKER_GOLDEN_DIR "/trainer/old_recipe.json"));
  Recipe expected = unlike_any_default();
  expected.train.mix = {
      .mixup_alpha = 0.2, .cutmix_alpha = 1.1, .probability = 0.6, .per_batch = true};
  EXPECT_EQ(recipe_to_json(recipe_from_json(old)), recipe_to_json(expected));
  // Where it was off, nothing is left of it.
  old["mix"]["mixup_alpha"] = old["mix"]["cutmix_alpha"] = 0;
  old["mix"]["probability"] = 1;
  EXPECT_EQ(recipe_from_json(old).train.mix, MixSpec{});
  EXPECT_EQ(recipe_from_json(old).eval.mix, MixSpec{});
  Json wrong = old;
  wrong["mix"]["probability"] = "often";
  EXPECT_THAT(recipe_refusal(wrong), HasSubstr("recipe.mix.probability: "));
  wrong = old;
  wrong["mix"].erase("mixup_alpha");
  EXPECT_THAT(recipe_refusal(wrong), HasSubstr("recipe.mix.mixup_alpha: "));
  wrong = old;
  wrong["mix"] = 3;
  EXPECT_EQ(recipe_refusal(wrong), "recipe.mix is not known");
  wrong = recipe_to_json(expected);
  wrong["mix"] = old["mix"];
  EXPECT_EQ(recipe_refusal(wrong), "recipe.mix is not known");
}

TEST(RecipeJson, EveryChoiceHasItsName) {
  Recipe recipe = unlike_any_default();
  const auto expect = [&](auto& field, const char* path, const std::vector<const char*>& names,
                          size_t first = 0) {
    using Choice = std::remove_reference_t<decltype(field)>;
    for (size_t i = 0; i < names.size(); ++i) {
      field = static_cast<Choice>(first + i);
      const Json json = recipe_to_json(recipe);
      EXPECT_EQ(json.at(Json::json_pointer(path)), names[i]);
      EXPECT_EQ(recipe_to_json(recipe_from_json(json)), json) << names[i];
    }
  };
  expect(recipe.last_batch, "/last_batch", {"pad", "drop", "wrap"});
  expect(recipe.schedule.kind, "/schedule/kind", {"constant", "step", "cosine", "triangle"});
  expect(recipe.optimizer.kind, "/optimizer/kind", {"lars", "adam", "adamw"}, 1);
  expect(recipe.average.kind, "/average/kind", {"none", "ema", "lookahead"});
  expect(recipe.precision.emplace(), "/precision", {"fp32", "bf16"});
  recipe.precision.reset();
  EXPECT_EQ(recipe_to_json(recipe)["precision"], "auto");
  EXPECT_FALSE(recipe_from_json(recipe_to_json(recipe)).precision);
}

TEST(RecipeJson, RefusalsNameTheField) {
  const Json sound = recipe_to_json(unlike_any_default());
  const auto after = [&](auto change) {
    Json json = sound;
    change(json);
    return recipe_refusal(json);
  };
  EXPECT_EQ(recipe_refusal(sound), "");
  EXPECT_EQ(after([](Json& j) { j["optimizer"].erase("nesterov"); }),
            "recipe.optimizer.nesterov is missing");
  EXPECT_EQ(after([](Json& j) { j["schedule"]["colour"] = 1; }),
            "recipe.schedule.colour is not known");
  EXPECT_EQ(after([](Json& j) { j["train"] = "resize | mix(mixup=-1)"; }),
            "recipe.train: augment: mix: mixup is -1, must be 0 to 1000");
  EXPECT_EQ(recipe_refusal(Json(3)), "recipe is not an object but 3");
  EXPECT_EQ(after([](Json& j) { j["train"] = 3; }), "recipe.train is no text of stages but 3");
  EXPECT_EQ(after([](Json& j) { j["train"] = "flip(up=1)"; }),
            "recipe.train: augment: flip has no up; it has alternating, p");
  EXPECT_EQ(after([](Json& j) { j["precision"] = 16; }),
            "recipe.precision is 16, which is not one of fp32, bf16, auto");
  EXPECT_THAT(after([](Json& j) { j["batch"] = "many"; }), HasSubstr("recipe.batch: "));
  EXPECT_THAT(after([](Json& j) { j["input"]["width"] = nullptr; }),
              HasSubstr("recipe.input.width: "));
  EXPECT_EQ(after([](Json& j) { j["batch"] = 1e38; }),
            "recipe.batch: 1e+38 is no whole number from -2147483648 to 2147483647");
  EXPECT_EQ(after([](Json& j) { j["batch"] = uint64_t{1} << 31; }),
            "recipe.batch: 2147483648 is no whole number from -2147483648 to 2147483647");
  EXPECT_EQ(after([](Json& j) { j["batch"] = -(int64_t{1} << 31) - 1; }),
            "recipe.batch: -2147483649 is no whole number from -2147483648 to 2147483647");
  EXPECT_THAT(after([](Json& j) { j["batch"] = true; }), HasSubstr("recipe.batch: true is no"));
  EXPECT_THAT(after([](Json& j) { j["mean"] = {1, 2}; }), HasSubstr("recipe.mean"));
}

TEST(RecipeJson, RefusalsNameTheFieldOfAnOldAugmentation) {
  const Json sound = Json::parse(read_whole_file(STOKER_GOLDEN_DIR "/trainer/old_recipe.json"));
  const auto after = [&](auto change) {
    Json json = sound;
    change(json);
    return recipe_refusal(json);
  };
  EXPECT_EQ(after([](Json& j) { j["train"]["flip"] = "up"; }),
            "recipe.train.flip is \"up\", which is not one of none, random, alternating");
  EXPECT_EQ(after([](Json& j) { j["train"]["crop"] = "five"; }),
            "recipe.train.crop is \"five\", which is not one of random_resized, resize_center, "
            "pad_random, whole");
  EXPECT_EQ(after([](Json& j) { j["train"]["pad_mode"] = "edge"; }),
            "recipe.train.pad_mode is \"edge\", which is not one of zero, reflect");
  EXPECT_EQ(after([](Json& j) { j["train"]["filter"] = "box"; }),
            "recipe.train.filter is \"box\", which is not one of bilinear, bicubic");
  EXPECT_EQ(after([](Json& j) { j["train"].erase("hue"); }), "recipe.train.hue is missing");
  EXPECT_EQ(after([](Json& j) { j["eval"]["colour"] = 1; }), "recipe.eval.colour is not known");
  EXPECT_THAT(after([](Json& j) { j["eval"]["output"]["width"] = nullptr; }),
              HasSubstr("recipe.eval.output.width: "));
  EXPECT_EQ(after([](Json& j) { j["train"]["cutout_value"] = 256; }),
            "recipe.train.cutout_value: 256 is no whole number from 0 to 255");
  EXPECT_THAT(after([](Json& j) { j["train"]["hue"] = 3; }),
              HasSubstr("recipe.train: augment: color_jitter: hue is 3, must be "));
}

}  // namespace
}  // namespace stoker
