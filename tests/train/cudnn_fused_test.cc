// Tests of what cuDNN can fuse with a convolution, on GPUs that are only described to it. It
// compiles kernels for that, which needs a driver: an idle one is loaded.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <set>
#include <string>

#include "tests/support/idle_cuda_driver.h"
#include "tests/train/cudnn_gpus.h"
#include "train/cuda/conv_graphs.h"

namespace stoker {
namespace {

// For a GPU (of kGpus) and a fusion: cuDNN 9.19's engines, and how many of the 29 shapes of
// ResNet-50 and airnet each one supports. There is no other engine for any of them.
struct Offer {
  int gpu;
  ConvFusion fusion;
  std::map<std::string, int> engines;
};
void PrintTo(const Offer& offer, std::ostream* out) { *out << kGpus[offer.gpu].name; }
const Offer kOffers[] = {
    {0, ConvFusion::statistics, {{"eng3", 29}}},
    {0, ConvFusion::relu_statistics, {{"eng3", 29}}},
    {0, ConvFusion::data_add, {{"eng1", 29}}},
    {0, ConvFusion::scale_relu, {{"eng1", 29}, {"eng7", 29}}},
    {0, ConvFusion::scale_add_relu, {{"eng1", 29}, {"eng7", 29}}},
    {1, ConvFusion::statistics, {{"eng3", 29}}},
    {1, ConvFusion::relu_statistics, {{"eng3", 29}}},
    {1, ConvFusion::data_add, {{"eng1", 29}, {"eng2", 23}}},
    {1, ConvFusion::scale_relu, {{"eng2", 29}, {"eng7", 29}}},
    {1, ConvFusion::scale_add_relu, {{"eng2", 29}, {"eng7", 29}}},
    {2, ConvFusion::statistics, {{"eng3", 29}}},
    {2, ConvFusion::relu_statistics, {{"eng3", 29}}},
    {2, ConvFusion::data_add, {{"eng1", 6}, {"eng9", 23}}},
    {2, ConvFusion::scale_relu, {{"eng7", 29}, {"eng9", 29}}},
    {2, ConvFusion::scale_add_relu, {{"eng7", 29}, {"eng9", 29}}},
};

// cuDNN compiles with NVRTC, which it opens itself; without NVRTC it offers nothing.
std::string nvrtc_problem() {
  const std::string name = "libnvrtc.so." + std::to_string(CUDART_VERSION / 1000);
  return dlopen(name.c_str(), RTLD_LAZY) != nullptr ? "" : "there is no " + name;
}

class CudnnFusedTest : public ::testing::TestWithParam<Offer> {
 protected:
  void SetUp() override {
    if (!nvrtc_problem().empty()) GTEST_SKIP() << nvrtc_problem();
  }
  FusedConvWish wish_of(const ConvShape& shape) const {
    return {shape, GetParam().fusion, true, DeviceTuning{}.workspace_limit};
  }

  const CudnnTarget target_{json_of(kGpus[GetParam().gpu])};
};

TEST_P(CudnnFusedTest, EveryShapeHasPlansOfTheseEngines) {
  std::vector<ConvShape> shapes =
      shapes_of(make_net("resnet50", {224, 224}, 1000), 256, Precision::bf16);
  for (const ConvShape& shape : shapes_of(make_net("airnet", {32, 32}, 10), 1024, Precision::bf16))
    shapes.push_back(shape);
  EXPECT_EQ(shapes.size(), 29u);
  std::map<std::string, int> engines;
  for (const ConvShape& shape : shapes) {
    std::set<std::string> of_shape;
    for (const CudnnConfig& config : list_fused_configs(target_, wish_of(shape))) {
      of_shape.insert(config.name.substr(0, config.name.find('_')));
    }
    EXPECT_FALSE(of_shape.empty()) << describe(shape, ConvPass::forward);
    for (const std::string& engine : of_shape) ++engines[engine];
  }
  // Another version may offer more or fewer engines.
  if (cudnnGetVersion() / 100 == 919) {
    EXPECT_EQ(engines, GetParam().engines);
  }
}

// Making a plan compiles and loads its kernel; its text contains the kernel.
TEST_P(CudnnFusedTest, APlanIsKeptWithItsKernel) {
  const FusedConvWish wish =
      wish_of({256, 64, 56, 56, 64, 56, 56, {3, 3}, 1, {1, 1}, Precision::bf16});
  const int before = idle_cuda_driver_loads();
  const std::vector<CudnnPlan> plans = list_fused_plans(target_, wish, 1);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_GT(idle_cuda_driver_loads(), before);
  const CudnnPlan& plan = plans[0];
  const std::string text = text_of(plan);
  const auto restored = restore_fused_plan(target_, wish, plan.name, text);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->name, plan.name);
  EXPECT_EQ(restored->workspace_bytes, plan.workspace_bytes);
  EXPECT_EQ(restored->notes, plan.notes);
  EXPECT_EQ(text_of(*restored), text);
  EXPECT_FALSE(restore_fused_plan(target_, wish, plan.name, "{}"));
  EXPECT_FALSE(restore_fused_plan(target_, wish, plan.name, text.substr(0, text.size() / 2)));
  FusedConvWish tight = wish;
  tight.workspace_limit = plan.workspace_bytes - 1;
  EXPECT_FALSE(restore_fused_plan(target_, tight, plan.name, text));
}

INSTANTIATE_TEST_SUITE_P(Described, CudnnFusedTest, ::testing::ValuesIn(kOffers),
                         [](const auto& offer) {
                           return "Gpu" + std::to_string(offer.param.gpu) + "Fusion" +
                                  std::to_string(static_cast<int>(offer.param.fusion));
                         });

TEST(CudnnFusedPlainTest, ANameFindsTheSamePlan) {
  if (!nvrtc_problem().empty()) GTEST_SKIP() << nvrtc_problem();
  const CudnnTarget target(json_of(kGpus[1]));
  const FusedConvWish wish{{256, 64, 56, 56, 64, 56, 56, {3, 3}, 1, {1, 1}, Precision::bf16},
                           ConvFusion::statistics,
                           true,
                           DeviceTuning{}.workspace_limit};
  const std::vector<CudnnPlan> plans = list_fused_plans(target, wish, 2);
  ASSERT_EQ(plans.size(), 2u);
  const auto found = find_fused_plan(target, wish, plans[1].name);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, plans[1].name);
  EXPECT_NE(found->name, plans[0].name);
  EXPECT_EQ(found->workspace_bytes, plans[1].workspace_bytes);
  // The texts differ, because cuDNN writes some memory addresses into them.
  EXPECT_EQ(text_of(*found).size(), text_of(plans[1]).size());
  EXPECT_FALSE(find_fused_plan(target, wish, "eng62_k2=0"));
}

// Sums exist only for products on tensor cores, which fp32 never uses.
TEST(CudnnFusedPlainTest, Fp32HasNoStatistics) {
  for (const DescribedGpu& gpu : kGpus) {
    const FusedConvWish wish{{16, 64, 16, 16, 64, 16, 16, {3, 3}, 1, {1, 1}, Precision::fp32},
                             ConvFusion::statistics,
                             true,
                             DeviceTuning{}.workspace_limit};
    EXPECT_TRUE(list_fused_configs(CudnnTarget(json_of(gpu)), wish).empty()) << gpu.name;
  }
}

}  // namespace
}  // namespace stoker
