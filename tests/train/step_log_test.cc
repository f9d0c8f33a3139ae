// A run's record of its steps: files that a resumed run cuts back, losses in 16 bits, and steps
// that stand out.
#include "train/run/step_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

constexpr float kNoNorm = std::numeric_limits<float>::quiet_NaN();

StepRow step_of(int64_t step, float loss, float norm = kNoNorm) {
  return {.step = step, .loss_sum = 4 * loss, .weight_sum = 4, .gradient_norm = norm};
}

TEST(StepLog, KeepsALossIn16BitsAndWhetherTheRowWasRight) {
  for (const float loss : {0.0f, 1e-4f, 0.7f, 3.14159f, 40.0f, 1e30f}) {
    for (const float top1 : {0.0f, 1.0f}) {
      const auto kept = from_row_loss(to_row_loss({loss, top1}));
      ASSERT_TRUE(kept);
      EXPECT_NEAR(kept->loss, loss, loss / 128);
      EXPECT_EQ(kept->right, top1 == 1);
    }
  }
  const auto broken = from_row_loss(to_row_loss({std::nanf(""), 1}));
  ASSERT_TRUE(broken);
  EXPECT_TRUE(std::isnan(broken->loss));
  EXPECT_TRUE(std::isinf(from_row_loss(to_row_loss({INFINITY, 0}))->loss));
  EXPECT_FALSE(from_row_loss(kNoRowLoss));
}

TEST(StepLog, AResumedRunCutsBothFilesBack) {
  const TempFolder folder;
  const auto log = [&](int64_t first, int64_t end, float loss) {
    StepLog steps(folder.path(), first, 3);
    for (int64_t step = first; step < end; ++step) {
      const RowLoss rows[] = {static_cast<RowLoss>(step), 1, to_row_loss({loss, 0})};
      steps.add(step_of(step, loss), rows);
    }
  };
  log(5, 15, 1);
  std::filesystem::resize_file(folder.path() + "/steps.bin", 9 * sizeof(StepRow) + 7);  // torn
  log(9, 12, 2);
  const std::vector<StepRow> steps = read_steps(folder.path());
  ASSERT_EQ(steps.size(), 7u);
  RowLossFile rows(folder.path(), 3);
  ASSERT_EQ(rows.count(), 7);
  for (int64_t i = 0; i < 7; ++i) {
    const float loss = i < 4 ? 1 : 2;
    EXPECT_EQ(steps[static_cast<size_t>(i)].step, 5 + i);
    EXPECT_EQ(steps[static_cast<size_t>(i)].loss(), loss);
    RowLoss found[3] = {};
    EXPECT_EQ(rows.read(i, found), 5 + i);
    EXPECT_EQ(found[0], 5 + i);
    EXPECT_EQ(from_row_loss(found[2])->loss, loss);
    EXPECT_TRUE(rows.find(5 + i, found));
  }
  RowLoss found[3] = {};
  EXPECT_FALSE(rows.find(4, found));
  EXPECT_FALSE(rows.find(12, found));
}

TEST(StepLog, FindsTheStepThatStandsOut) {
  std::mt19937 random(3);
  std::normal_distribution<float> noise(0, 0.05f);
  std::vector<StepRow> steps;
  for (int64_t step = 0; step < 400; ++step) {
    const float falling = 0.3f + 2 / (1 + 0.02f * static_cast<float>(step));
    steps.push_back(step_of(step, falling + noise(random), 1 + noise(random)));
  }
  EXPECT_TRUE(find_spikes(steps).empty());
  steps[200].loss_sum += 4;
  steps[300].gradient_norm = 2;
  const std::vector<Spike> spikes = find_spikes(steps);
  ASSERT_EQ(spikes.size(), 2u);
  EXPECT_EQ(std::min(spikes[0].step, spikes[1].step), 200);
  EXPECT_EQ(std::max(spikes[0].step, spikes[1].step), 300);
  steps.push_back(step_of(400, std::nanf("")));
  EXPECT_EQ(find_spikes(steps).front().step, 400);
}

TEST(StepLog, WithoutNormsOnlyTheLossCounts) {
  std::vector<StepRow> steps;
  for (int64_t step = 0; step < 60; ++step) steps.push_back(step_of(step, step == 30 ? 3 : 1));
  const std::vector<Spike> spikes = find_spikes(steps);
  ASSERT_EQ(spikes.size(), 1u);
  EXPECT_EQ(spikes[0].step, 30);
  EXPECT_TRUE(std::isnan(spikes[0].norm_score));
}

}  // namespace
}  // namespace stoker
