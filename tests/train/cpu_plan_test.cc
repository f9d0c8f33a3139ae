// Tests of the CPU engine's plans, also against the plans of the device engine.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/engine_fixture.h"
#include "tests/train/peak_bytes.h"
#include "tests/train/plan_fixture.h"
#include "train/cpu/micro_batch_net.h"
#include "train/cpu/rules.h"
#include "train/device/program.h"
#include "train/device/tuning.h"
#include "train/model/recipe.h"

namespace stoker {
namespace {

// oneDNN has one thread here, as on the engine's workers.
class CpuPlanTest : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (!cpu_supports(GetParam())) GTEST_SKIP() << "no bf16 instructions";
  }
};

TEST_P(CpuPlanTest, NothingThatIsStillReadIsOverwritten) {
  std::vector<NetSpec> nets = zoo();
  nets.push_back(many_readers());
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  for (const NetSpec& net : nets) {
    for (const bool training : {true, false}) {
      const GradientLayout layout(net, kCpuFusion);
      const PlanOptions options =
          plan_options(engine_options(2, 2, 1, GetParam()), kCpuFusion, training);
      const MicroBatchNet built(net, options, layout, engine);
      expect_sound(built.plan(), layout, net.name);
      // How well buffers fit into each other depends on the memory that oneDNN wants for its own
      // use: 1.25 times the peak at most without AMX, 1.34 with it.
      EXPECT_LE(built.arena_bytes(), 1.35 * peak_bytes(buffer_lives(built.plan()))) << net.name;
    }
  }
}

// The backward pass does without some values, and copies others out of those that it needs.
TEST_P(CpuPlanTest, KeepsLessForTheBackwardPass) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto peak = [&](const NetSpec& net, const FusionRules& rules) {
    const GradientLayout layout(net, rules);
    const PlanOptions options = plan_options(engine_options(4, 4, 1, GetParam()), rules, true);
    return peak_bytes(buffer_lives(MicroBatchNet(net, options, layout, engine).plan()));
  };
  FusionRules keeps = kCpuFusion;
  keeps.relu_back_after_pool = keeps.recalls_parts = false;
  const NetSpec vgg = make_net("vgg16", {224, 224}, 10);
  const NetSpec densenet = make_net("densenet40", {32, 32}, 10);
  EXPECT_LT(peak(vgg, kCpuFusion), 0.8 * peak(vgg, keeps));
  EXPECT_LT(peak(densenet, kCpuFusion), 0.65 * peak(densenet, keeps));
}

// The plan decides the order of the layers' steps, not the engine.
TEST_P(CpuPlanTest, LayersRunInTheSameOrderAsOnADevice) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto layers = [](const ExecutionPlan& plan) {
    std::vector<std::string> order;
    for (const PlanStep& step : plan.steps) {
      const std::string name = step.name;
      if (name.starts_with("conv") && name != "conv_bias" && name != "conv_bias_back") {
        order.push_back(name + " of " + std::to_string(plan.nodes[step.node].node));
      }
    }
    return order;
  };
  for (const NetSpec& net : zoo()) {
    const EngineOptions options = engine_options(2, 2, 1, GetParam());
    const GradientLayout layout(net, kCpuFusion), device_layout(net, device_fusion({}));
    const MicroBatchNet cpu(net, plan_options(options, kCpuFusion, true), layout, engine);
    const DeviceProgram device =
        build_device_program(net, plan_options(options, device_fusion({}), true), DeviceTuning{},
                             device_layout, nullptr);
    EXPECT_EQ(layers(cpu.plan()), layers(device.plan)) << net.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, CpuPlanTest, ::testing::Values(Precision::fp32, Precision::bf16));

}  // namespace
}  // namespace stoker
