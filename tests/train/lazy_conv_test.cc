// Tests that a convolution's passes are planned on demand only.
#include "train/cuda/lazy_conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakePlanner final : public ConvPlanner {
 public:
  const CudnnPlan& plan(const ConvShape&, ConvPass pass) override {
    planned.push_back(pass);
    plans[pass].name = "eng" + std::to_string(static_cast<int>(pass));
    plans[pass].workspace_bytes = 100 + static_cast<int>(pass);
    return plans[pass];
  }
  const CudnnPlan* with_statistics(const ConvShape&) override {
    ++asked_for_statistics;
    summing.name = "eng3";
    summing.workspace_bytes = 77;
    return has_statistics ? &summing : nullptr;
  }
  void execute(const CudnnPlan& plan, const CudnnDescriptor&) override { run.push_back(plan.name); }

  bool has_statistics = false;
  int asked_for_statistics = 0;
  CudnnPlan summing;

  std::map<ConvPass, CudnnPlan> plans;
  std::vector<ConvPass> planned;
  std::vector<std::string> run;
};

constexpr ConvShape kShape{2, 8, 5, 5, 16, 5, 5, {3, 3}, 1, {1, 1}, Precision::bf16};

TEST(LazyConvTest, APassIsPlannedOnceAndWhenAskedFor) {
  FakePlanner planner;
  const auto conv = make_lazy_conv(planner, kShape, true);
  EXPECT_THAT(planner.planned, IsEmpty());
  EXPECT_EQ(conv->workspace_bytes(ConvPass::backward_weights), 102);
  EXPECT_THAT(conv->implementation(ConvPass::backward_weights),
              ::testing::AllOf(HasSubstr("weights, 2 rows, 5x5x8 -> 5x5x16"), HasSubstr("eng2")));
  EXPECT_THAT(conv->implementation(ConvPass::forward), HasSubstr("eng0"));
  EXPECT_THAT(planner.planned, ElementsAre(ConvPass::backward_weights, ConvPass::forward));
  float memory[4] = {};
  conv->run(ConvPass::forward, memory, memory + 1, memory + 2, nullptr);
  EXPECT_THAT(planner.run, ElementsAre("eng0"));
}

TEST(LazyConvTest, APassThatNobodyAskedForDoesNotRun) {
  FakePlanner planner;
  const auto conv = make_lazy_conv(planner, kShape, true);
  conv->workspace_bytes(ConvPass::forward);
  EXPECT_THAT(thrown_by<std::logic_error>(
                  [&] { conv->run(ConvPass::backward_data, nullptr, nullptr, nullptr, nullptr); }),
              ::testing::AllOf(HasSubstr("backward data"), HasSubstr("not planned")));
  EXPECT_THAT(planner.planned, ElementsAre(ConvPass::forward));
  EXPECT_THAT(planner.run, IsEmpty());
}

TEST(LazyConvTest, WithoutABackwardPassNoneIsPlanned) {
  FakePlanner planner;
  const auto conv = make_lazy_conv(planner, kShape, false);
  EXPECT_THAT(thrown_by<std::logic_error>([&] { conv->workspace_bytes(ConvPass::backward_data); }),
              HasSubstr("no backward pass"));
  EXPECT_THAT(planner.planned, IsEmpty());
}

TEST(LazyConvTest, APassWithSumsIsItsOwnPlan) {
  FakePlanner planner;
  const auto without = make_lazy_conv(planner, kShape, true);
  EXPECT_EQ(without->summing(), nullptr);
  planner.has_statistics = true;
  const auto conv = make_lazy_conv(planner, kShape, true);
  EXPECT_EQ(planner.asked_for_statistics, 1);
  DeviceSummingConv* summing = conv->summing();
  ASSERT_NE(summing, nullptr);
  EXPECT_EQ(conv->summing(), summing);
  EXPECT_EQ(planner.asked_for_statistics, 2);
  EXPECT_EQ(summing->workspace_bytes(), 77);
  EXPECT_THAT(summing->implementation(), HasSubstr("and its sums: cuDNN eng3"));
  float memory[4] = {};
  summing->run(memory, memory + 1, memory + 2, memory + 3, nullptr);
  EXPECT_THAT(planner.run, ElementsAre("eng3"));
  EXPECT_THAT(planner.planned, IsEmpty());  // the plain pass is for evaluation alone
  ConvShape odd = kShape;
  odd.out_channels = 10;  // squares after ten sums would not be aligned
  EXPECT_EQ(make_lazy_conv(planner, odd, true)->summing(), nullptr);
}

}  // namespace
}  // namespace stoker
