#include <gtest/gtest.h>

#include <random>

#include "tests/train/peak_bytes.h"
#include "train/graph/execution_plan.h"

namespace stoker {
namespace {

void expect_sound_plan(const std::vector<BufferLife>& buffers, const BufferPlan& plan) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0);
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_LE(plan.offsets[i] + buffers[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = buffers[i].first_step <= buffers[j].last_step &&
                            buffers[j].first_step <= buffers[i].last_step;
      const bool apart = plan.offsets[i] + buffers[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + buffers[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j << " share bytes while both live";
    }
  }
}

TEST(PlannerTest, BuffersAliveTogetherNeverShare) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<BufferLife> buffers(1 + random() % 60);
    for (BufferLife& buffer : buffers) {
      buffer.bytes = random() % 5000;
      buffer.first_step = static_cast<int>(random() % 40);
      buffer.last_step = buffer.first_step + static_cast<int>(random() % 10);
    }
    const BufferPlan plan = plan_memory(buffers);
    expect_sound_plan(buffers, plan);
    EXPECT_GE(plan.bytes, peak_bytes(buffers));
    EXPECT_LE(plan.bytes, 2 * peak_bytes(buffers));
  }
}

TEST(PlannerTest, AChainNeedsTwoBuffersOnly) {
  std::vector<BufferLife> chain;
  for (int step = 0; step < 10; ++step) chain.push_back({1024, step, step + 1});
  EXPECT_EQ(plan_memory(chain).bytes, 2048);
}

TEST(PlannerTest, LastStepIsInclusive) {
  EXPECT_EQ(plan_memory(std::vector<BufferLife>{{64, 0, 3}, {64, 3, 4}}).bytes, 128);
  EXPECT_EQ(plan_memory(std::vector<BufferLife>{{64, 0, 3}, {64, 4, 4}}).bytes, 64);
}

TEST(PlannerTest, NothingNeedsNothing) {
  EXPECT_EQ(plan_memory({}).bytes, 0);
  EXPECT_EQ(peak_bytes({}), 0);
}

}  // namespace
}  // namespace stoker
