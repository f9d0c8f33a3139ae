// Tests of fine-tuning: weights from a file, new heads, rates of parts of a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/support/temp_folder.h"
#include "train/model/initialise.h"
#include "train/model/models.h"
#include "train/run/run_start.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// The tensors of a state_dict: parameters, statistics and a count of batches.
std::vector<FileTensor> state_dict(const NetSpec& net, float value) {
  std::vector<FileTensor> tensors;
  for (const auto& table : {parameter_table(net), statistics_table(net)}) {
    for (const TensorInfo& info : table) {
      tensors.push_back(
          {info.name, info.shape, std::vector<float>(static_cast<size_t>(info.count), value)});
    }
  }
  tensors.push_back({"bn1.num_batches_tracked", {}, {1}});
  return tensors;
}

void write(const std::string& path, const std::vector<FileTensor>& tensors) {
  std::vector<TensorView> views;
  for (const FileTensor& tensor : tensors) {
    views.push_back({tensor.name, tensor.shape, tensor.values});
  }
  write_safetensors(path, views, {});
}

TrainState first_state(const NetSpec& net) {
  TrainState state;
  state.parameters = initial_parameters(net, {1});
  state.statistics = initial_statistics(net);
  return state;
}

class InitialWeightsTest : public ::testing::Test {
 protected:
  // Returns why a state_dict, after `spoil`, is refused for resnet20 with 10 classes.
  std::string refusal(const std::function<void(std::vector<FileTensor>&)>& spoil) {
    std::vector<FileTensor> tensors = state_dict(net_, 0.25f);
    spoil(tensors);
    write(file_, tensors);
    TrainState state = first_state(net_);
    try {
      InitialWeights(file_, net_).read(state);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "accepted";
  }

  const TempFolder folder_;
  const std::string file_ = folder_.path() + "/weights.safetensors";
  const NetSpec net_ = make_net("resnet20", {32, 32}, 10);
};

TEST_F(InitialWeightsTest, EveryTensorIsRead) {
  write(file_, state_dict(net_, 0.25f));
  TrainState state = first_state(net_);
  const InitialWeights weights(file_, net_);
  weights.read(state);
  EXPECT_THAT(state.parameters, ::testing::Each(0.25f));
  EXPECT_THAT(state.statistics, ::testing::Each(0.25f));
  EXPECT_THAT(weights.describe(), HasSubstr(file_));
}

TEST_F(InitialWeightsTest, AHeadForOtherClassesBeginsAnew) {
  write(file_, state_dict(make_net("resnet20", {32, 32}, 100), 0.25f));
  TrainState state = first_state(net_);
  const TrainState before = state;
  const InitialWeights weights(file_, net_);
  weights.read(state);
  EXPECT_THAT(weights.describe(), HasSubstr("fc.weight, fc.bias are new, for 10 outputs instead of "
                                            "100"));
  for (const TensorInfo& info : parameter_table(net_)) {
    const bool head = info.name.starts_with("fc.");
    for (int64_t i = info.offset; i < info.offset + info.count; ++i) {
      ASSERT_EQ(state.parameters[i], head ? before.parameters[i] : 0.25f) << info.name;
    }
  }
}

TEST_F(InitialWeightsTest, AFileOfAnotherModelIsRefusedByName) {
  const auto find = [](std::vector<FileTensor>& tensors, const std::string& name) {
    return std::ranges::find(tensors, name, &FileTensor::name);
  };
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_THAT(refusal([&](auto& t) { t.erase(find(t, "layer2.0.conv1.weight")); }),
              HasSubstr("no tensor layer2.0.conv1.weight"));
  EXPECT_THAT(refusal([&](auto& t) {
                t.push_back({"layer4.conv", {1}, {0}});
              }),
              HasSubstr("layer4.conv has no place in resnet20"));
  EXPECT_THAT(refusal([&](auto& t) {
                *find(t, "conv1.weight") = {"conv1.weight", {2}, {1, 2}};
              }),
              HasSubstr("conv1.weight is F32 [2], but resnet20 has F32 [16, 3, 3, 3]"));
  EXPECT_THAT(refusal([&](auto& t) {
                find(t, "bn1.running_var")->values[3] = std::numeric_limits<float>::quiet_NaN();
              }),
              HasSubstr("bn1.running_var has a value that is not finite"));
  EXPECT_THROW(InitialWeights(folder_.path() + "/none", net_), std::invalid_argument);
}

TEST(RateFactors, TheLongestNameCountsAndZeroFreezes) {
  const NetSpec net = make_net("resnet20", {32, 32}, 10);
  const std::vector<TensorInfo> parameters = parameter_table(net);
  Recipe recipe = default_recipe("resnet20");
  recipe.schedule.kind = ScheduleKind::constant;
  recipe.optimizer.rate_factors = {{"conv1", 0}, {"layer1", 0.5}, {"layer1.0.conv1", 2}};
  StepRates rates;
  set_rates(recipe, parameters, 0, 100, 10, rates);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    float factor = 1;
    if (name.starts_with("layer1.")) factor = 0.5f;
    if (name == "layer1.0.conv1.weight") factor = 2;
    if (name == "conv1.weight") factor = 0;
    EXPECT_FLOAT_EQ(rates.tensors[i].learning_rate, 0.1f * factor) << name;
    EXPECT_EQ(rates.tensors[i].frozen, factor == 0) << name;
  }
}

TEST(RateFactors, ANameOfNothingIsRefused) {
  const std::vector<TensorInfo> parameters = parameter_table(make_net("resnet20", {32, 32}, 10));
  OptimizerSpec spec;
  spec.rate_factors = {{"layer", 0.5}};  // no name, although some begin with these letters
  EXPECT_THROW(require_rate_factors(spec, parameters), std::invalid_argument);
  spec.rate_factors = {{"layer1", 0}};
  EXPECT_NO_THROW(require_rate_factors(spec, parameters));
  spec.rate_factors = {{"conv1", 0},  {"bn1", 0},    {"layer1", 0},
                       {"layer2", 0}, {"layer3", 0}, {"fc", 0}};
  EXPECT_THROW(require_rate_factors(spec, parameters), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
