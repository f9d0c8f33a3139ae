// The recipes that come as config files (train/recipes): each trains, says in config.json what it
// trained with, and resumes exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/train_runs.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const std::string kRecipes = STOKER_SOURCE_DIR "/train/recipes/";
// Few, because each checkpoint of resnet18 has 180 MB.
constexpr int kRecipeSteps = 6;

class TrainRecipes : public TrainRuns {
 protected:
  // A run of the recipe with its own options, but for what makes it small.
  std::vector<std::string> recipe(const std::string& file, const std::string& name) const {
    return {STOKER_PROGRAM,  "train",
            "--config",      kRecipes + file,
            "--data",        data(),
            "--size",        "32",
            "--batch",       "4",
            "--seed",        "7",
            "--micro-batch", "2",
            "--eval-every",  "0",
            "--out",         run_folder(name),
            "--precision",   "fp32"};
  }

  // Trains once to the end and once with a stop after half of it, expects the same weights,
  // averages and momenta, and returns what config.json says of the recipe.
  nlohmann::json train_and_resume(const std::string& file) const {
    const std::string steps = std::to_string(kRecipeSteps);
    const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
      const ProgramResult result = run_program(with(recipe(file, name), more));
      EXPECT_EQ(result.exit_code, 0) << result.err;
    };
    run("whole", {"--max-steps", steps});
    run("parts", {"--max-steps", std::to_string(kRecipeSteps / 2)});
    run("parts", {"--max-steps", steps, "--resume"});
    for (const char* what : {"model", "state"}) {
      const std::string whole = weights("whole", kRecipeSteps, what);
      EXPECT_NE(whole, "");
      EXPECT_TRUE(whole == weights("parts", kRecipeSteps, what)) << "the " << what << " differs";
    }
    return nlohmann::json::parse(read_text(run_folder("whole") + "/config.json")).at("recipe");
  }
};

// A file that is added gets a test below.
TEST_F(TrainRecipes, AreAllTestedHere) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(kRecipes)) {
    files.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(files, UnorderedElementsAre("airnet-trivial.toml", "resnet18-mixed.toml",
                                          "resnet50-one-hour.toml"));
}

TEST_F(TrainRecipes, AirnetWithTrivialAugment) {
  const nlohmann::json recipe = train_and_resume("airnet-trivial.toml");
  EXPECT_EQ(recipe.at("name"), "airnet");
  EXPECT_EQ(recipe.at("train"),
            "resize | random_crop(padding=2, mode='reflect') | flip(alternating=True) | "
            "trivial_augment_wide");
  EXPECT_EQ(recipe.at("epochs"), 24);
  EXPECT_EQ(recipe.at("average").at("kind"), "lookahead");
}

TEST_F(TrainRecipes, Resnet18WithMixedImages) {
  const nlohmann::json recipe = train_and_resume("resnet18-mixed.toml");
  EXPECT_EQ(recipe.at("name"), "resnet18");
  EXPECT_EQ(recipe.at("train"),
            "random_resized_crop | flip | random_augment | "
            "random_erasing(p=0.1, value=(124, 116, 104)) | mix(mixup=0.2, cutmix=1)");
  EXPECT_EQ(recipe.at("epochs"), 300);
  EXPECT_EQ(recipe.at("optimizer").at("learning_rate"), 0.5);
  EXPECT_EQ(recipe.at("optimizer").at("lr_ref_batch"), 1024);
  EXPECT_EQ(recipe.at("optimizer").at("weight_decay"), 2e-5);
  EXPECT_EQ(recipe.at("average").at("kind"), "ema");
  EXPECT_EQ(recipe.at("average").at("decay"), 0.9998);
}

// One step, because its checkpoint has 200 MB.
TEST_F(TrainRecipes, Resnet50InOneHour) {
  const ProgramResult result = run_program(
      with(recipe("resnet50-one-hour.toml", "hour"), {"--max-steps", "1", "--accumulate", "2"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("(0.1 x 4 / 256), x 0.1 at 33.3333 % 66.6667 % 88.8889 %, "
                                    "warm-up from 0.03125 over 5 epochs; momentum 0.9 (Nesterov)"));
  EXPECT_THAT(result.out, HasSubstr("in 2 parts per step"));
  const auto config = nlohmann::json::parse(read_text(run_folder("hour") + "/config.json"));
  const nlohmann::json& made = config.at("recipe");
  EXPECT_EQ(config.at("accumulate"), 2);
  EXPECT_EQ(made.at("name"), "resnet50");
  EXPECT_EQ(made.at("epochs"), 90);
  EXPECT_EQ(made.at("zero_gamma"), true);
  EXPECT_EQ(made.at("label_smoothing"), 0);
  EXPECT_EQ(made.at("optimizer").at("decay_norms"), false);
  EXPECT_EQ(made.at("optimizer").at("weight_decay"), 1e-4);
  EXPECT_EQ(made.at("optimizer").at("nesterov"), true);
}

// The model and its stages stand at the top of a file, where other subcommands read them as well.
TEST_F(TrainRecipes, ShowTheirPixels) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"airnet-trivial.toml", "trivial_augment_wide: "},
      {"resnet18-mixed.toml", "random_augment"},
      {"resnet50-one-hour.toml", "random_resized_crop"}};
  for (const auto& [file, stage] : files) {
    const ProgramResult shown = run_stoker(
        {"peek", "--config", kRecipes + file, "--data", data(), "-o", out_.path() + "/sheet.png"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    const ProgramResult explained =
        run_stoker({"dump", "--config", kRecipes + file, "--data", data(), "--explain-augment",
                    "--out", out_.path() + "/rows"});
    EXPECT_EQ(explained.exit_code, 0) << explained.err;
    EXPECT_THAT(explained.out, HasSubstr(stage));
  }
}

}  // namespace
}  // namespace stoker
