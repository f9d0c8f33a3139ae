// Tests of train/graph, which both engines share: lowering, the layout of gradients, plans.
// cpu_plan_test.cc tests the CPU engine's plans.
#include <gtest/gtest.h>

#include "tests/train/engine_fixture.h"
#include "tests/train/peak_bytes.h"
#include "tests/train/plan_fixture.h"
#include "train/cpu/rules.h"
#include "train/device/program.h"
#include "train/device/tuning.h"
#include "train/device/types.h"

namespace stoker {
namespace {

std::vector<NetSpec> nets() {
  std::vector<NetSpec> all = zoo();
  all.push_back(many_readers());
  return all;
}

int count_of(const std::vector<FusedNode>& nodes, OpKind kind) {
  return static_cast<int>(std::ranges::count(nodes, kind, &FusedNode::kind));
}

TEST(LoweringTest, BothEnginesRunTheSameLayers) {
  for (const NetSpec& net : nets()) {
    const auto layers = [&](const FusionRules& rules) {
      std::vector<std::pair<int, OpKind>> found;
      for (const FusedNode& node : lower(net, rules)) {
        const bool layer = node.kind == OpKind::conv || node.kind == OpKind::batch_norm ||
                           node.kind == OpKind::linear || node.kind == OpKind::max_pool;
        if (layer) found.emplace_back(node.node, node.kind);
      }
      std::ranges::sort(found);  // a norm with a fused addition runs in the addition's place
      return found;
    };
    EXPECT_EQ(layers(kCpuFusion), layers(device_fusion({}))) << net.name;
  }
}

TEST(LoweringTest, RulesSayWhatFuses) {
  const NetSpec airnet = make_net("airnet", {32, 32}, 10);
  const NetSpec resnet = make_net("resnet18", {32, 32}, 10);
  for (const bool gelu : {false, true}) {
    for (const bool residual : {false, true}) {
      const FusionRules rules{
          .gelu_in_norm = gelu, .residual_in_norm = residual, .input_channels = 8};
      // One follows a convolution.
      EXPECT_EQ(count_of(lower(airnet, rules), OpKind::gelu) == 1, gelu);
      EXPECT_EQ(count_of(lower(resnet, rules), OpKind::add), residual ? 0 : 8);
      EXPECT_EQ(count_of(lower(resnet, rules), OpKind::relu), 0);
      EXPECT_EQ(lower(resnet, rules)[0].shape.channels, 8);
    }
  }
  EXPECT_EQ(lower(resnet, {})[0].shape.channels, 3);
}

TEST(GradientLayoutTest, TensorsAreAlignedAndApartAndTheRestFollows) {
  for (const NetSpec& net : nets()) {
    for (const FusionRules& rules : {kCpuFusion, device_fusion({})}) {
      const GradientLayout layout(net, rules);
      const std::vector<TensorInfo> table = parameter_table(net);
      ASSERT_EQ(layout.tensors().size(), table.size());
      int64_t end = 0;
      for (size_t t = 0; t < table.size(); ++t) {
        const LayoutTensor& tensor = layout.tensors()[t];
        EXPECT_EQ(tensor.offset % GradientLayout::kTensorAlignment, 0);
        EXPECT_GE(tensor.offset, end);
        EXPECT_GE(tensor.count, table[t].count);
        EXPECT_EQ(layout.tensor_of(table[t].node, table[t].kind), static_cast<int>(t));
        EXPECT_EQ(layout.offset_of(table[t].node, table[t].kind), tensor.offset);
        end = tensor.offset + tensor.count;
      }
      EXPECT_GE(layout.moments(), end);
      EXPECT_GE(layout.metrics(), layout.moments() + total_count(statistics_table(net)));
      EXPECT_GE(layout.numbers(), layout.metrics() + kStepMetrics);
    }
  }
}

// Without padding both engines have the same layout.
TEST(GradientLayoutTest, IsTheSameForBothEngines) {
  DeviceTuning tuning;
  tuning.input_channels = 3;
  for (const NetSpec& net : nets()) {
    const GradientLayout cpu(net, kCpuFusion), device(net, device_fusion(tuning));
    EXPECT_EQ(cpu.numbers(), device.numbers()) << net.name;
    for (size_t t = 0; t < cpu.tensors().size(); ++t) {
      EXPECT_EQ(cpu.tensors()[t].offset, device.tensors()[t].offset) << net.name;
      EXPECT_EQ(cpu.tensors()[t].count, device.tensors()[t].count) << net.name;
    }
  }
}

TEST(GradientLayoutTest, ChunksCoverEveryTensorOnce) {
  const GradientLayout layout(make_net("resnet18", {32, 32}, 10), kCpuFusion);
  for (const int64_t most : {int64_t{100}, kChunkNumbers, int64_t{1} << 30}) {
    std::vector<int64_t> covered(layout.tensors().size(), 0);
    for (const TensorChunk& chunk : layout.chunks(most)) {
      EXPECT_LE(chunk.count, most);
      EXPECT_EQ(chunk.offset, layout.tensors()[chunk.tensor].offset + covered[chunk.tensor]);
      covered[chunk.tensor] += chunk.count;
    }
    for (size_t t = 0; t < covered.size(); ++t) EXPECT_EQ(covered[t], layout.tensors()[t].count);
  }
}

TEST(ExecutionPlanTest, NothingThatIsStillReadIsOverwrittenOnADevice) {
  for (const NetSpec& net : nets()) {
    for (const bool training : {true, false}) {
      const GradientLayout layout(net, device_fusion({}));
      const PlanOptions options =
          plan_options(engine_options(4, 4, 1, Precision::bf16), device_fusion({}), training);
      DeviceTuning tuning;
      tuning.workspace_limit = 1 << 16;
      const ExecutionPlan plan = build_device_program(net, options, tuning, layout, nullptr).plan;
      EXPECT_EQ(plan.forward_steps == plan.steps.size(), !training);
      expect_sound(plan, layout, net.name);
      EXPECT_LE(plan.memory.bytes, 1.25 * peak_bytes(buffer_lives(plan))) << net.name;
    }
  }
}

TEST(ExecutionPlanTest, ABufferLivesFromItsFirstStepToItsLast) {
  ExecutionPlan plan;
  plan.buffer_bytes = {256, 512, 256};
  plan.input = 0;
  plan.steps.resize(4);
  plan.steps[1].reads = {0};
  plan.steps[1].writes = {1};
  plan.steps[2].writes = {2};
  plan.steps[3].reads = {1, 2};
  const std::vector<BufferLife> lives = buffer_lives(plan);
  const auto is = [&](int buffer, int64_t bytes, int first, int last) {
    return lives[buffer].bytes == bytes && lives[buffer].first_step == first &&
           lives[buffer].last_step == last;
  };
  EXPECT_TRUE(is(0, 256, 0, 1));  // the input is written before the first step
  EXPECT_TRUE(is(1, 512, 1, 3));
  EXPECT_TRUE(is(2, 256, 2, 3));
}

}  // namespace
}  // namespace stoker
