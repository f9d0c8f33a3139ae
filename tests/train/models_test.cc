#include "train/model/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "train/model/initialise.h"
#include "train/model/recipe.h"

namespace stoker {
namespace {

int64_t parameters(const std::string& model, int size, int classes) {
  return total_count(parameter_table(make_net(model, {size, size}, classes)));
}

TEST(ModelsTest, ParameterCountsAreThePublishedOnes) {
  EXPECT_EQ(parameters("resnet18", 224, 1000), 11689512);  // torchvision
  EXPECT_EQ(parameters("resnet34", 224, 1000), 21797672);
  EXPECT_EQ(parameters("resnet50", 224, 1000), 25557032);
  EXPECT_EQ(parameters("resnet20", 32, 10), 269722);  // option A shortcuts
  EXPECT_EQ(parameters("resnet56", 32, 10), 853018);
  EXPECT_EQ(parameters("resnet110", 32, 10), 1727962);
  EXPECT_EQ(parameters("airnet", 32, 10), 1972792);
  EXPECT_EQ(parameters("alexnet", 224, 1000), 61100840);  // torchvision, as what follows
  EXPECT_EQ(parameters("googlenet", 224, 1000), 13004888);
  EXPECT_EQ(parameters("inception_v3", 299, 1000), 27161264);
  EXPECT_EQ(parameters("resnet101", 224, 1000), 44549160);
  EXPECT_EQ(parameters("resnet152", 224, 1000), 60192808);
  EXPECT_EQ(parameters("vgg16", 224, 1000), 138357544);
  EXPECT_EQ(parameters("vgg16_bn", 224, 1000), 138365992);
  EXPECT_EQ(parameters("vgg19", 224, 1000), 143667240);
  EXPECT_EQ(parameters("vgg19_bn", 224, 1000), 143678248);
  const NetSpec mlp = make_net("mlp41m", {100, 80}, 2);
  EXPECT_EQ(total_count(parameter_table(mlp)), 41157101);
  EXPECT_EQ(parameters("densenet40", 32, 10), 1019722);  // Huang et al.: 1.0 M and 7.0 M
  EXPECT_NEAR(static_cast<double>(parameters("densenet100", 32, 10)), 7.0e6, 0.06e6);
}

TEST(ModelsTest, FlopsAreThePublishedOnes) {
  EXPECT_NEAR(forward_flops(make_net("resnet18", {224, 224}, 1000)), 2 * 1.814e9, 1e7);
  EXPECT_NEAR(forward_flops(make_net("resnet50", {224, 224}, 1000)), 2 * 4.089e9, 1e7);
  EXPECT_NEAR(forward_flops(make_net("airnet", {32, 32}, 10)), 236e6, 3e6);
  EXPECT_NEAR(forward_flops(make_net("vgg16", {224, 224}, 1000)), 2 * 15.47e9, 1e8);
  EXPECT_NEAR(forward_flops(make_net("alexnet", {224, 224}, 1000)), 2 * 0.714e9, 1e7);
}

TEST(ModelsTest, NamesAreTorchvisions) {
  const std::vector<TensorInfo> table = parameter_table(make_net("resnet50", {64, 64}, 10));
  EXPECT_EQ(table[0].name, "conv1.weight");
  EXPECT_EQ(table[1].name, "bn1.weight");
  EXPECT_EQ(table.back().name, "fc.bias");
  const auto has = [&](const char* name) {
    return std::any_of(table.begin(), table.end(),
                       [&](const TensorInfo& info) { return info.name == name; });
  };
  EXPECT_TRUE(has("layer1.0.downsample.0.weight"));
  EXPECT_TRUE(has("layer4.2.bn3.bias"));
  EXPECT_FALSE(has("layer1.1.downsample.0.weight"));
  EXPECT_EQ(parameter_table(make_net("airnet", {32, 32}, 10))[2].name, "layers.0.conv1.weight");
}

TEST(ModelsTest, EveryListedModelCanBeMade) {
  for (const std::string& name : list_models()) {
    const Recipe recipe = default_recipe(name);
    EXPECT_NO_THROW(make_net(name, recipe.input, name == "mlp41m" ? 2 : 10)) << name;
    EXPECT_NO_THROW(recipe.validate()) << name;
    EXPECT_EQ(recipe.name, name);
  }
}

TEST(ModelsTest, BadRequestsAreRefusedWithTheirNumbers) {
  EXPECT_THROW(make_net("resnet19", {32, 32}, 10), std::invalid_argument);
  EXPECT_THROW(make_net("airnet", {64, 64}, 10), std::invalid_argument);
  EXPECT_THROW(make_net("airnet", {32, 32}, 10, {{1, 2}}), std::invalid_argument);
  EXPECT_THROW(make_net("resnet18", {224, 224}, 0), std::invalid_argument);
  EXPECT_THROW(make_net("mlp41m", {100, 80}, 10), std::invalid_argument);
  EXPECT_THROW(make_net("mlp41m", {32, 32}, 2), std::invalid_argument);
  try {
    make_net("inception_v3", {32, 32}, 10);
    FAIL() << "Inception has no place for 32 pixels";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("inception_v3' does not fit 32x32"));
  }
}

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(const std::vector<float>& values, const TensorInfo& info) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < info.count; ++i) {
    sum += values[info.offset + i];
    squares += static_cast<double>(values[info.offset + i]) * values[info.offset + i];
  }
  const double n = static_cast<double>(info.count);
  return {sum / n, std::sqrt(squares / n - sum * sum / n / n)};
}

TEST(InitialiseTest, KaimingFanOutHasItsDeviation) {
  const NetSpec net = make_net("resnet18", {64, 64}, 10);
  const std::vector<float> values = initial_parameters(net, {7});
  const TensorInfo info = parameter_table(net)[3];  // layer1.0.conv1.weight (64, 64, 3, 3)
  const Moments m = moments(values, info);
  EXPECT_NEAR(m.mean, 0, 1e-3);
  EXPECT_NEAR(m.deviation, std::sqrt(2.0 / (64 * 9)), 1e-3);
}

TEST(InitialiseTest, DiracPassesTheFirstChannelsThrough) {
  const NetSpec net = make_net("airnet", {32, 32}, 10);
  const std::vector<float> values = initial_parameters(net, {7});
  const TensorInfo info = parameter_table(net)[2];  // (64, 24, 3, 3)
  for (int o = 0; o < 24; ++o) {
    for (int i = 0; i < 24 * 9; ++i) {
      EXPECT_EQ(values[info.offset + o * 24 * 9 + i], i == o * 9 + 4 ? 1.0f : 0.0f);
    }
  }
  EXPECT_NE(values[info.offset + 24 * 24 * 9], 0.0f);
}

TEST(InitialiseTest, VggAndGooglenetStartAsTorchvisions) {
  const NetSpec vgg = make_net("vgg16", {32, 32}, 10, {{8, 8, 8, 8, 8, 64}});
  const std::vector<float> values = initial_parameters(vgg, {7});
  for (const TensorInfo& info : parameter_table(vgg)) {
    const Moments m = moments(values, info);
    if (info.kind == ParameterKind::conv_bias || info.kind == ParameterKind::linear_bias) {
      EXPECT_EQ(m.deviation, 0) << info.name;
    } else if (info.name == "classifier.0.weight") {
      EXPECT_NEAR(m.deviation, 0.01, 1e-4);
    }
  }
  const NetSpec inception = make_net("inception_v3", {299, 299}, 10);
  const std::vector<float> more = initial_parameters(inception, {7});
  for (const TensorInfo& info : parameter_table(inception)) {
    const double wanted = info.name == "AuxLogits.fc.weight" ? 0.001 : 0.1;
    const bool weight =
        info.kind == ParameterKind::conv_weight || info.kind == ParameterKind::linear_weight;
    if (!weight) continue;
    EXPECT_NEAR(moments(more, info).deviation, wanted, 0.05 * wanted) << info.name;
  }
}

TEST(InitialiseTest, SeedsDifferAndRepeat) {
  const NetSpec net = make_net("resnet20", {32, 32}, 10);
  const std::vector<float> first = initial_parameters(net, {1});
  EXPECT_EQ(first, initial_parameters(net, {1}));
  EXPECT_NE(first, initial_parameters(net, {2}));
}

TEST(InitialiseTest, ZeroGammaSilencesEveryBranchEnd) {
  const NetSpec net = make_net("resnet50", {64, 64}, 10);
  InitOptions options = {1};
  options.zero_gamma = true;
  const std::vector<float> values = initial_parameters(net, options);
  for (const TensorInfo& info : parameter_table(net)) {
    if (info.kind != ParameterKind::norm_weight) continue;
    const bool end = info.name.find(".bn3.") != std::string::npos;
    EXPECT_EQ(values[info.offset], end ? 0.0f : 1.0f) << info.name;
  }
}

}  // namespace
}  // namespace stoker
