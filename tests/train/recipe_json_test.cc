// Tests of the JSON text of a recipe, which every checkpoint contains: old checkpoints must be
// readable, and the same recipe must give the same text, byte for byte.
#include "train/model/recipe_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "pipeline/durable_file.h"

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
  recipe.train = {.output = {41, 25},
                  .crop = CropMode::pad_random,
                  .scale_min = 0.125,
                  .scale_max = 0.75,
                  .ratio_min = 0.5,
                  .ratio_max = 1.7,
                  .resize_short = 77,
                  .filter = Filter::bicubic,
                  .pad = 3,
                  .pad_mode = PadMode::zero,
                  .flip = FlipMode::alternating,
                  .cutout = 5,
                  .cutout_value = 9,
                  .brightness = 0.1,
                  .contrast = 0.2,
                  .saturation = 0.3,
                  .hue = 0.05};
  recipe.eval = {.output = {42, 26}, .crop = CropMode::whole};
  recipe.mean = {0.1f, 0.2f, 0.3f};
  recipe.stddev = {0.4f, 0.5f, 0.6f};
  recipe.optimizer = {0.3, 512, 0.85, true, 1e-3, true, true, 64, false};
  recipe.schedule = {ScheduleKind::step, 0.25, 0.375, 0.0625, {0.5, 0.75}, 0.2, 1.5, 0.01};
  recipe.label_smoothing = 0.15;
  recipe.average = {AverageKind::lookahead, 5, 0.95, 3};
  recipe.mix = {0.2, 1.1, 0.6};
  recipe.zero_gamma = true;
  recipe.whitening = true;
  recipe.whiten_bias_epochs = 2;
  recipe.eval_views = 6;
  recipe.precision = Precision::bf16;
  return recipe;
}

std::string refusal(const Json& json) {
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
}

TEST(RecipeJson, EveryChoiceHasItsName) {
  Recipe recipe = unlike_any_default();
  const auto expect = [&](auto& field, const char* path, const std::vector<const char*>& names) {
    using Choice = std::remove_reference_t<decltype(field)>;
    for (size_t i = 0; i < names.size(); ++i) {
      field = static_cast<Choice>(i);
      const Json json = recipe_to_json(recipe);
      EXPECT_EQ(json.at(Json::json_pointer(path)), names[i]);
      EXPECT_EQ(recipe_to_json(recipe_from_json(json)), json) << names[i];
    }
  };
  expect(recipe.last_batch, "/last_batch", {"pad", "drop", "wrap"});
  expect(recipe.train.crop, "/train/crop",
         {"random_resized", "resize_center", "pad_random", "whole"});
  expect(recipe.train.flip, "/train/flip", {"none", "random", "alternating"});
  expect(recipe.train.pad_mode, "/train/pad_mode", {"zero", "reflect"});
  expect(recipe.train.filter, "/train/filter", {"bilinear", "bicubic"});
  expect(recipe.schedule.kind, "/schedule/kind", {"constant", "step", "cosine", "triangle"});
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
    return refusal(json);
  };
  EXPECT_EQ(refusal(sound), "");
  EXPECT_EQ(after([](Json& j) { j["optimizer"].erase("nesterov"); }),
            "recipe.optimizer.nesterov is missing");
  EXPECT_EQ(after([](Json& j) { j["schedule"]["colour"] = 1; }),
            "recipe.schedule.colour is not known");
  EXPECT_EQ(after([](Json& j) { j["mix"] = 3; }), "recipe.mix is not an object but 3");
  EXPECT_EQ(refusal(Json(3)), "recipe is not an object but 3");
  EXPECT_EQ(after([](Json& j) { j["train"]["flip"] = "up"; }),
            "recipe.train.flip is \"up\", which is not one of none, random, alternating");
  EXPECT_EQ(after([](Json& j) { j["precision"] = 16; }),
            "recipe.precision is 16, which is not one of fp32, bf16, auto");
  EXPECT_THAT(after([](Json& j) { j["batch"] = "many"; }), HasSubstr("recipe.batch: "));
  EXPECT_THAT(after([](Json& j) { j["eval"]["output"]["width"] = nullptr; }),
              HasSubstr("recipe.eval.output.width: "));
  EXPECT_EQ(after([](Json& j) { j["batch"] = 1e38; }),
            "recipe.batch: 1e+38 is no whole number from -2147483648 to 2147483647");
  EXPECT_EQ(after([](Json& j) { j["batch"] = uint64_t{1} << 31; }),
            "recipe.batch: 2147483648 is no whole number from -2147483648 to 2147483647");
  EXPECT_EQ(after([](Json& j) { j["batch"] = -(int64_t{1} << 31) - 1; }),
            "recipe.batch: -2147483649 is no whole number from -2147483648 to 2147483647");
  EXPECT_THAT(after([](Json& j) { j["batch"] = true; }), HasSubstr("recipe.batch: true is no"));
  EXPECT_THAT(after([](Json& j) { j["mean"] = {1, 2}; }), HasSubstr("recipe.mean"));
}

}  // namespace
}  // namespace stoker
