#include "train/model/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "pipeline/files/invalid_field.h"
#include "train/model/models.h"
#include "train/model/recipe_json.h"

namespace stoker {
namespace {

const TensorUpdate& of(const StepRates& rates, const std::vector<TensorInfo>& table,
                       const std::string& name) {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].name == name) return rates.tensors[i];
  }
  throw std::runtime_error("no tensor " + name);
}

TEST(Recipe, EveryModelHasASoundOne) {
  for (const std::string& name : list_models()) {
    const Recipe recipe = default_recipe(name);
    EXPECT_EQ(recipe.name, name);
    EXPECT_NO_THROW(recipe.validate());
    EXPECT_NO_THROW(make_net(name, recipe.input, name == "mlp41m" ? 2 : 10));
    EXPECT_EQ(recipe.batch % recipe.micro_batch_size, 0);
    EXPECT_GE(describe(recipe).size(), 4u);
  }
}

TEST(Recipe, RefusesAnUnknownName) {
  try {
    default_recipe("lenet");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("airnet-narrow"), std::string::npos);
  }
}

TEST(Recipe, RefusesFieldsOutOfRangeByName) {
  const auto refused = [](const std::string& field, auto change) {
    Recipe recipe = default_recipe("resnet20");
    change(recipe);
    try {
      recipe.validate();
      ADD_FAILURE() << field;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
  };
  refused("epochs", [](Recipe& r) { r.epochs = 0; });
  refused("batch", [](Recipe& r) { r.batch = 0; });
  refused("momentum", [](Recipe& r) { r.optimizer.momentum = 1; });
  refused("learning_rate", [](Recipe& r) { r.optimizer.learning_rate = NAN; });
  refused("beta1", [](Recipe& r) { r.optimizer.beta1 = 1; });
  refused("beta2", [](Recipe& r) { r.optimizer.beta2 = -0.1; });
  refused("epsilon", [](Recipe& r) { r.optimizer.epsilon = 0; });
  refused("trust", [](Recipe& r) { r.optimizer.trust = 0; });
  refused("clip_norm", [](Recipe& r) { r.optimizer.clip_norm = -1; });
  refused("decoupled", [](Recipe& r) {
    r.optimizer.kind = OptimizerKind::adam;
    r.optimizer.decoupled = true;
  });
  refused("label_smoothing", [](Recipe& r) { r.label_smoothing = 1; });
  refused("eval_views", [](Recipe& r) { r.eval_views = 3; });
  refused("input", [](Recipe& r) { r.train.output = {16, 16}; });
  refused("stddev", [](Recipe& r) { r.stddev[1] = 0; });
  refused("train has 2 views", [](Recipe& r) { r.train.set_stages("views(resize, counts=2)"); });
  refused("eval has 3 views", [](Recipe& r) { r.eval.set_stages("views(resize, counts=3)"); });
  refused("average.decay", [](Recipe& r) { r.average.decay = 1; });
}

// airbench94 sums its loss and uses kilostep_scale = 1024 * (1 + 1 / (1 - 0.85)), lr = 11.5 /
// kilostep_scale, wd = 0.0153 * batch / kilostep_scale, torch's weight_decay = wd / lr, and 64
// times the rate for norm biases. One step of torch.optim.SGD with these values, computed by hand,
// must equal ours.
TEST(Recipe, AirnetsStepIsAirbenchs) {
  for (const char* name : {"airnet", "airnet-narrow"}) {
    const Recipe recipe = default_recipe(name);
    const auto table = parameter_table(make_net(name, recipe.input, 10));
    StepRates rates;
    const int64_t steps_per_epoch = 50000 / recipe.batch;
    const auto total = static_cast<int64_t>(std::ceil(steps_per_epoch * recipe.epochs));
    const int64_t step = 30;
    set_rates(recipe, table, step, total, steps_per_epoch, rates);

    const double kilostep_scale = 1024 * (1 + 1 / (1 - 0.85));
    const double lr = 11.5 / kilostep_scale, wd = 0.0153 * recipe.batch / kilostep_scale;
    const double peak = std::floor(0.23 * static_cast<double>(total));
    const double factor = 0.2 * (1 - step / peak) + step / peak;
    const auto airbench = [&](double lr_of_group, double w, double g_sum) {
      const double g = g_sum + wd / lr_of_group * w;
      return lr_of_group * factor * (g + 0.85 * g);  // the first step: v = g
    };
    const auto ours = [&](const TensorUpdate& rule, double w, double g_mean) {
      const double g = g_mean + rule.weight_decay * w;
      return rule.learning_rate * (g + static_cast<double>(rates.args.momentum) * g);
    };
    const double w = 0.7, g_mean = -0.003;
    const double weight = airbench(lr, w, g_mean * recipe.batch);
    const double bias = airbench(64 * lr, w, g_mean * recipe.batch);
    EXPECT_NEAR(ours(of(rates, table, "layers.1.conv1.weight"), w, g_mean) / weight, 1, 1e-5);
    EXPECT_NEAR(ours(of(rates, table, "head.weight"), w, g_mean) / weight, 1, 1e-5);
    EXPECT_NEAR(ours(of(rates, table, "whiten.bias"), w, g_mean) / weight, 1, 1e-5);
    EXPECT_NEAR(ours(of(rates, table, "layers.1.norm1.bias"), w, g_mean) / bias, 1, 1e-5);
    EXPECT_TRUE(rates.args.nesterov);
    EXPECT_FALSE(rates.args.decoupled);
    EXPECT_TRUE(of(rates, table, "whiten.weight").frozen);
    EXPECT_TRUE(of(rates, table, "layers.0.norm2.weight").frozen);
    EXPECT_FALSE(of(rates, table, "whiten.bias").frozen);
    set_rates(recipe, table, 3 * steps_per_epoch - 1, total, steps_per_epoch, rates);
    EXPECT_FALSE(of(rates, table, "whiten.bias").frozen);
    set_rates(recipe, table, 3 * steps_per_epoch, total, steps_per_epoch, rates);
    EXPECT_TRUE(of(rates, table, "whiten.bias").frozen);
  }
}

TEST(Recipe, ResnetsDecayNeitherNormsNorBiases) {
  for (const bool decoupled : {false, true}) {
    Recipe recipe = default_recipe("resnet18");
    recipe.optimizer.decoupled = decoupled;
    const auto table = parameter_table(make_net("resnet18", {64, 64}, 10));
    StepRates rates;
    set_rates(recipe, table, 100, 1000, 10, rates);
    EXPECT_FLOAT_EQ(of(rates, table, "conv1.weight").weight_decay, 1e-4f);
    EXPECT_FLOAT_EQ(of(rates, table, "fc.weight").weight_decay, 1e-4f);
    EXPECT_EQ(of(rates, table, "fc.bias").weight_decay, 0);
    EXPECT_EQ(of(rates, table, "bn1.weight").weight_decay, 0);
    EXPECT_EQ(of(rates, table, "bn1.bias").weight_decay, 0);
    EXPECT_EQ(rates.args.decoupled, decoupled);
    for (const TensorUpdate& tensor : rates.tensors) EXPECT_FALSE(tensor.frozen);
  }
}

TEST(Recipe, LarsAdaptsAndDecaysOnlyTheOtherTensors) {
  Recipe recipe = default_recipe("airnet");  // whose own optimizer decays norms
  recipe.optimizer.kind = OptimizerKind::lars;
  const auto table = parameter_table(make_net("airnet", {32, 32}, 10));
  StepRates rates;
  set_rates(recipe, table, 100, 1000, 10, rates);
  EXPECT_EQ(rates.args.kind, OptimizerKind::lars);
  EXPECT_TRUE(of(rates, table, "head.weight").adapted);
  EXPECT_GT(of(rates, table, "head.weight").weight_decay, 0);
  for (const char* name : {"layers.1.norm1.weight", "layers.1.norm1.bias", "whiten.bias"}) {
    EXPECT_FALSE(of(rates, table, name).adapted) << name;
    EXPECT_EQ(of(rates, table, name).weight_decay, 0) << name;
  }
}

TEST(Recipe, UpdatesAreCountedFromOne) {
  const Recipe recipe = default_recipe("resnet20");
  const auto table = parameter_table(make_net("resnet20", {32, 32}, 10));
  StepRates rates;
  set_rates(recipe, table, 0, 1000, 10, rates);
  EXPECT_EQ(rates.args.count, 1);
  rates.more_updates = 100;
  set_rates(recipe, table, 7, 1000, 10, rates);
  EXPECT_EQ(rates.args.count, 108);
}

TEST(Recipe, AnotherOptimizerGetsItsOwnNumbers) {
  const OptimizerSpec airnets = default_recipe("airnet").optimizer;
  EXPECT_EQ(with_optimizer(airnets, OptimizerKind::sgd).norm_bias_factor, 64);
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    const OptimizerSpec adam = with_optimizer(airnets, kind);
    EXPECT_EQ(adam.effective_learning_rate(4096), 1e-3);  // unscaled
    EXPECT_EQ(adam.weight_decay, kind == OptimizerKind::adam ? 0 : 0.01);
    EXPECT_EQ(adam.norm_bias_factor, 1);
    EXPECT_FALSE(adam.train_norm_weights);  // is the net's
    EXPECT_NO_THROW(adam.validate());
    EXPECT_THAT(adam.describe(4096, "constant"),
                ::testing::StartsWith("learning rate 0.001, constant; Adam"));
  }
  const OptimizerSpec lars = with_optimizer(airnets, OptimizerKind::lars);
  EXPECT_EQ(lars.learning_rate, airnets.learning_rate);
  EXPECT_EQ(lars.momentum, airnets.momentum);
  EXPECT_FALSE(lars.nesterov || lars.decay_norms);
}

TEST(Recipe, LearningRateScalesWithTheGlobalBatch) {
  Recipe recipe = default_recipe("resnet18");
  EXPECT_DOUBLE_EQ(recipe.optimizer.effective_learning_rate(256), 0.1);
  EXPECT_DOUBLE_EQ(recipe.optimizer.effective_learning_rate(1024), 0.4);
  recipe.optimizer.lr_ref_batch = 0;
  EXPECT_DOUBLE_EQ(recipe.optimizer.effective_learning_rate(1024), 0.1);
}

TEST(Recipe, FewerEpochsShortenTheWarmUp) {
  Recipe recipe = default_recipe("resnet18");
  recipe.set_epochs(10);
  EXPECT_DOUBLE_EQ(recipe.schedule.warmup_epochs, 1);
  recipe.set_epochs(90);
  EXPECT_DOUBLE_EQ(recipe.schedule.warmup_epochs, 1);
}

TEST(Recipe, AverageFollowsItsFormula) {
  const AverageSpec lookahead = default_recipe("airnet").average;
  EXPECT_LT(average_decay(lookahead, 4, 100), 0);
  EXPECT_NEAR(average_decay(lookahead, 50, 100), std::pow(0.95, 5) * 0.125, 1e-7);
  EXPECT_NEAR(average_decay(lookahead, 100, 100), std::pow(0.95, 5), 1e-7);
  AverageSpec ema;
  ema.kind = AverageKind::ema;
  EXPECT_NEAR(average_decay(ema, 1, 100000), 2.0 / 11, 1e-7);
  EXPECT_NEAR(average_decay(ema, 50000, 100000), 0.999, 1e-7);
  EXPECT_LT(average_decay({}, 10, 100), 0);
}

TEST(Recipe, MixIsOfTrainingPixelsOnly) {
  Recipe recipe = default_recipe("resnet20");
  recipe.train.mix.mixup_alpha = 0.2;
  recipe.validate();
  EXPECT_THAT(describe(recipe), ::testing::Contains(::testing::HasSubstr("mixup=0.2")));
  recipe.eval.mix.mixup_alpha = 0.2;
  EXPECT_THROW(recipe.validate(), InvalidField);
  recipe.eval.mix = {};
  recipe.train.mix.cutmix_alpha = -1;
  EXPECT_THROW(recipe.validate(), InvalidField);
}

TEST(Recipe, ViewsWeighOneTogether) {
  for (const int count : {1, 2, 6}) {
    float sum = 0;
    for (const WeightedView& view : eval_views(count)) sum += view.weight;
    EXPECT_FLOAT_EQ(sum, 1);
    EXPECT_EQ(eval_views(count).size(), static_cast<size_t>(count));
  }
  EXPECT_THROW(eval_views(3), std::invalid_argument);
}

// Each is what trained the accuracies of the README: another list would be another recipe.
TEST(Recipe, AugmentAsTheirPapers) {
  const auto expect = [](const char* model, const std::string& train, const std::string& eval) {
    const Recipe recipe = default_recipe(model);
    EXPECT_EQ(recipe.train.describe(), train);
    EXPECT_EQ(recipe.eval.describe(), eval);
  };
  expect("airnet",
         "output=32x32 resize | random_crop(padding=2, mode='reflect') | flip(alternating=True)",
         "output=32x32 resize");
  expect("resnet56", "output=32x32 resize | random_crop(padding=4) | flip", "output=32x32 resize");
  expect("resnet50", "output=224x224 random_resized_crop | flip",
         "output=224x224 resize_center_crop");
}

TEST(Recipe, JsonKeepsEveryField) {
  for (const std::string& name : list_models()) {
    Recipe recipe = default_recipe(name);
    recipe.precision = Precision::bf16;
    recipe.train.mix.cutmix_alpha = 1.0 / 3;
    recipe.train.stages = StageList("random_resized_crop(scale=(0.35, 1)) | solarize(128)");
    const std::string text = recipe_to_json(recipe).dump();
    const Recipe back = recipe_from_json(nlohmann::json::parse(text));
    EXPECT_EQ(recipe_difference(recipe, back), "");
    EXPECT_EQ(recipe_to_json(back).dump(), text);
    EXPECT_EQ(back.mean, recipe.mean);
    EXPECT_EQ(back.train.describe(), recipe.train.describe());
    EXPECT_EQ(back.precision, recipe.precision);
  }
}

// A field that is added to a struct but not to the JSON would be silently lost in a checkpoint.
TEST(Recipe, JsonCoversTheStructs) {
  EXPECT_EQ(recipe_to_json(default_recipe("airnet")).flatten().size(), 42u)
      << "fields were added: add them to train/model/recipe_json.cc, then correct the number here";
  EXPECT_EQ(sizeof(OptimizerSpec), 152u);
  EXPECT_EQ(sizeof(AverageSpec), 24u);
  EXPECT_EQ(sizeof(MixSpec), 40u);
}

TEST(Recipe, DifferenceNamesTheField) {
  const Recipe before = default_recipe("resnet20");
  Recipe after = before;
  after.optimizer.momentum = 0.8;
  EXPECT_EQ(recipe_difference(before, after), "optimizer.momentum: 0.9 -> 0.8");
  EXPECT_EQ(recipe_difference(before, after, {"optimizer.momentum"}), "");
  after = before;
  after.train.stages = StageList("resize | flip");
  EXPECT_EQ(recipe_difference(before, after),
            "train: \"resize | random_crop(padding=4) | flip\" -> \"resize | flip\"");
  after = before;
  after.schedule.milestones = {0.5};
  EXPECT_NE(recipe_difference(before, after), "");
}

TEST(Recipe, JsonRefusesWhatItDoesNotKnow) {
  const nlohmann::json sound = recipe_to_json(default_recipe("resnet20"));
  const auto refused = [&](auto change) {
    nlohmann::json json = sound;
    change(json);
    EXPECT_THROW(recipe_from_json(json), std::runtime_error);
  };
  refused([](nlohmann::json& j) { j.erase("batch"); });
  refused([](nlohmann::json& j) { j["colour"] = 1; });
  refused([](nlohmann::json& j) { j["batch"] = "many"; });
  refused([](nlohmann::json& j) { j["schedule"]["kind"] = "zigzag"; });
  refused([](nlohmann::json& j) { j["mean"] = {1, 2}; });
  refused([](nlohmann::json& j) { j = 3; });
}

}  // namespace
}  // namespace stoker
