// Tests that cuDNN has plans for every convolution of our models, on GPUs that are only described
// to it. Nothing runs; no driver is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/train/cudnn_gpus.h"
#include "train/cuda/conv_graphs.h"
#include "train/device/tuning.h"

namespace stoker {
namespace {

constexpr ConvPass kPasses[] = {ConvPass::forward, ConvPass::backward_data,
                                ConvPass::backward_weights};

ConvPlanWish wish_of(const ConvShape& shape, ConvPass pass, bool deterministic = true) {
  return {shape, pass, deterministic, DeviceTuning{}.workspace_limit};
}

void expect_plans(const DescribedGpu& gpu, const std::vector<ConvShape>& shapes) {
  const CudnnTarget target(json_of(gpu));
  for (const ConvShape& shape : shapes) {
    for (const ConvPass pass : kPasses) {
      const ConvPlanWish wish = wish_of(shape, pass);
      try {
        for (const CudnnPlan& plan : list_conv_plans(target, wish, 3)) {
          EXPECT_LE(plan.workspace_bytes, wish.workspace_limit);
          EXPECT_FALSE(plan.name.empty());
        }
      } catch (const std::runtime_error& error) {
        ADD_FAILURE() << gpu.name << ": " << error.what();
      }
    }
  }
}

TEST(CudnnPlanTest, EveryModelHasDeterministicPlans) {
  for (const DescribedGpu& gpu : kGpus) {
    expect_plans(gpu, shapes_of(make_net("airnet", {32, 32}, 10), 1024, Precision::bf16));
    expect_plans(gpu, shapes_of(make_net("resnet50", {224, 224}, 1000), 256, Precision::bf16));
    expect_plans(gpu, shapes_of(make_net("resnet18", {224, 224}, 1000), 256, Precision::bf16));
    expect_plans(gpu, shapes_of(make_net("resnet20", {32, 32}, 10), 128, Precision::bf16));
  }
}

// Nets with kernels of every kind: 11x11, 1x7 and 7x1, layers of 25,088 inputs, odd channels.
TEST(CudnnPlanTest, LargerAndOlderModelsHaveDeterministicPlans) {
  for (const DescribedGpu& gpu : kGpus) {
    for (const char* name : {"alexnet", "vgg16", "googlenet", "resnet152"}) {
      expect_plans(gpu, shapes_of(make_net(name, {224, 224}, 1000), 64, Precision::bf16));
    }
    expect_plans(gpu, shapes_of(make_net("inception_v3", {299, 299}, 1000), 64, Precision::bf16));
    expect_plans(gpu, shapes_of(make_net("densenet40", {32, 32}, 10), 64, Precision::bf16));
    expect_plans(gpu, shapes_of(make_net("mlp41m", {100, 80}, 2), 64, Precision::bf16));
  }
}

TEST(CudnnPlanTest, Fp32HasPlansWithoutTf32) {
  for (const DescribedGpu& gpu : kGpus) {
    expect_plans(gpu, shapes_of(make_net("airnet", {32, 32}, 10), 64, Precision::fp32));
    expect_plans(gpu, shapes_of(make_net("resnet18", {64, 64}, 10), 16, Precision::fp32));
    expect_plans(gpu, shapes_of(make_net("inception_v3", {299, 299}, 10), 16, Precision::fp32));
  }
}

// Sums with fewer digits than fp32 are never used, even without `deterministic`.
TEST(CudnnPlanTest, Bf16SumsInFp32) {
  using ::testing::AnyOf;
  using ::testing::Each;
  const std::vector<ConvShape> shapes =
      shapes_of(make_net("resnet50", {224, 224}, 1000), 256, Precision::bf16);
  for (const DescribedGpu& gpu : kGpus) {
    const CudnnTarget target(json_of(gpu));
    for (const ConvShape& shape : shapes) {
      for (const ConvPass pass : kPasses) {
        for (const CudnnPlan& plan : list_conv_plans(target, wish_of(shape, pass, false), 1000)) {
          EXPECT_THAT(plan.notes, Each(AnyOf(CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
                                             CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP,
                                             CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)))
              << gpu.name << ", " << describe(shape, pass) << ", " << plan.name;
        }
      }
    }
  }
}

// The name that the plan cache stores identifies a plan and is enough to find it again.
TEST(CudnnPlanTest, ANameFindsTheSamePlan) {
  const CudnnTarget target(json_of(kGpus[1]));
  std::vector<ConvShape> shapes =
      shapes_of(make_net("resnet50", {224, 224}, 1000), 256, Precision::bf16);
  for (const ConvShape& shape : shapes_of(make_net("airnet", {32, 32}, 10), 1024, Precision::bf16))
    shapes.push_back(shape);
  for (const ConvShape& shape : shapes_of(make_net("resnet20", {32, 32}, 10), 128, Precision::fp32))
    shapes.push_back(shape);
  for (const ConvShape& shape : shapes) {
    for (const ConvPass pass : kPasses) {
      const ConvPlanWish wish = wish_of(shape, pass);
      std::set<std::string> names, texts;
      for (const CudnnPlan& plan : list_conv_plans(target, wish, 20)) {
        const std::optional<CudnnPlan> found = find_conv_plan(target, wish, plan.name);
        ASSERT_TRUE(found) << describe(shape, pass) << ", " << plan.name;
        EXPECT_EQ(found->name, plan.name);
        EXPECT_EQ(found->workspace_bytes, plan.workspace_bytes);
        EXPECT_EQ(found->notes, plan.notes);
        EXPECT_EQ(text_of(*found), text_of(plan)) << plan.name;
        EXPECT_TRUE(names.insert(plan.name).second) << plan.name << " is offered twice";
        EXPECT_TRUE(texts.insert(text_of(plan)).second) << plan.name << " is another's";
      }
    }
  }
}

TEST(CudnnPlanTest, ANameOfNoPlanFindsNothing) {
  const CudnnTarget target(json_of(kGpus[1]));
  const ConvShape shape{256, 64, 56, 56, 64, 56, 56, {3, 3}, 1, {1, 1}, Precision::bf16};
  const ConvPlanWish wish = wish_of(shape, ConvPass::forward);
  const std::string name = list_conv_plans(target, wish, 1)[0].name;
  ASSERT_TRUE(find_conv_plan(target, wish, name));
  for (const std::string& wrong :
       {std::string(), std::string("eng"), std::string("eng9999"), std::string("engine 62"),
        "x" + name, name + "x", name + "_k", name + "_k2", name + "_k2=", name + "_k999=1",
        name.substr(0, name.rfind('=') + 1) + "9999"}) {
    EXPECT_FALSE(find_conv_plan(target, wish, wrong)) << wrong;
  }
}

// The wish applies even to a plan from the plan cache.
TEST(CudnnPlanTest, ANameOfAForbiddenPlanFindsNothing) {
  const CudnnTarget target(json_of(kGpus[1]));
  const ConvShape shape{16, 64, 16, 16, 64, 16, 16, {3, 3}, 1, {1, 1}, Precision::fp32};
  ConvPlanWish wish = wish_of(shape, ConvPass::backward_weights, false);
  int forbidden = 0;
  for (const CudnnPlan& plan : list_conv_plans(target, wish, 1000)) {
    const bool any_order = std::ranges::count(plan.notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    forbidden += any_order;
    wish.deterministic = true;
    EXPECT_NE(find_conv_plan(target, wish, plan.name).has_value(), any_order) << plan.name;
    wish.workspace_limit = plan.workspace_bytes - 1;
    EXPECT_FALSE(find_conv_plan(target, wish, plan.name)) << plan.name;
    wish = wish_of(shape, ConvPass::backward_weights, false);
  }
  EXPECT_GT(forbidden, 0);
}

// Among cuDNN's first 14 plans for this shape all but one are of engine 62, with different knobs.
TEST(CudnnPlanTest, TheFirstPlansAreOfSeveralEngines) {
  const CudnnTarget target(json_of(kGpus[1]));
  const ConvShape shape{256, 64, 56, 56, 64, 56, 56, {1, 1}, 1, {0, 0}, Precision::bf16};
  std::set<std::string> engines;
  for (const CudnnPlan& plan : list_conv_plans(target, wish_of(shape, ConvPass::forward), 6)) {
    engines.insert(plan.name.substr(0, plan.name.find('_')));
  }
  EXPECT_EQ(engines, (std::set<std::string>{"eng22", "eng45", "eng62"}));
}

// The input is padded to 8 channels because otherwise cuDNN does so itself, in a workspace.
TEST(CudnnPlanTest, APaddedInputNeedsNoWorkspace) {
  const CudnnTarget target(json_of(kGpus[1]));
  ConvShape stem{256, 8, 224, 224, 64, 112, 112, {7, 7}, 2, {3, 3}, Precision::bf16};
  EXPECT_EQ(list_conv_plans(target, {stem, ConvPass::forward, true, 1 << 30}, 1)[0].workspace_bytes,
            0);
  stem.in_channels = 4;
  EXPECT_GT(list_conv_plans(target, {stem, ConvPass::forward, true, 1 << 30}, 1)[0].workspace_bytes,
            int64_t{100} << 20);
}

TEST(CudnnPlanTest, WhatCudnnCannotDoIsNamed) {
  const CudnnTarget target(json_of(kGpus[1]));
  const ConvShape stem{256, 3, 224, 224, 64, 112, 112, {7, 7}, 2, {3, 3}, Precision::bf16};
  try {
    list_conv_plans(target, {stem, ConvPass::backward_weights, true, -1}, 1);
    FAIL() << "a plan without room was found";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("256 rows, 224x224x3 -> 112x112x64, kernel 7x7"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stoker
