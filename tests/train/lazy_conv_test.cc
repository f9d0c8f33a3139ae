// A convolution's passes are planned when they are asked for, and only then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "train/cuda_lazy_conv.h"

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
  void execute(const CudnnPlan& plan, const CudnnDescriptor&) override { run.push_back(plan.name); }

  std::map<ConvPass, CudnnPlan> plans;
  std::vector<ConvPass> planned;
  std::vector<std::string> run;
};

constexpr ConvShape kShape{2, 8, 5, 5, 16, 5, 5, 3, 1, 1, Precision::bf16};

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

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
  EXPECT_THAT(
      error_of([&] { conv->run(ConvPass::backward_data, nullptr, nullptr, nullptr, nullptr); }),
      ::testing::AllOf(HasSubstr("backward data"), HasSubstr("not planned")));
  EXPECT_THAT(planner.planned, ElementsAre(ConvPass::forward));
  EXPECT_THAT(planner.run, IsEmpty());
}

TEST(LazyConvTest, WithoutABackwardPassNoneIsPlanned) {
  FakePlanner planner;
  const auto conv = make_lazy_conv(planner, kShape, false);
  EXPECT_THAT(error_of([&] { conv->workspace_bytes(ConvPass::backward_data); }),
              HasSubstr("no backward pass"));
  EXPECT_THAT(planner.planned, IsEmpty());
}

}  // namespace
}  // namespace stoker
