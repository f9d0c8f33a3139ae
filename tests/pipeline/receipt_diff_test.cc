// The diff of two receipts names the first epoch, step and sample in which they differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <utility>

#include "pipeline/receipt/diff.h"
#include "tests/pipeline/receipt_support.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Changes one sample's pixels, or everything from a point on: the diff must find the first
// difference.
class ReceiptDiffTest : public ReceiptTest {
 protected:
  ReceiptDiffTest() : files_(jpeg_source(kSamples)) { augment_ = crop_spec(16); }
  const Source& source() override { return *files_; }
  // Returns the step of sample `id` in `epoch` of a run with global batch `batch`.
  Step step_of(SampleId id, int64_t epoch, int batch) {
    const Sampler sampler({.samples = kSamples, .rows = batch, .replicas = 1, .seed = 4});
    for (int64_t position = 0; position < kSamples; ++position) {
      if (sampler.order().at(sampler.key(epoch), position).id == id) {
        return epoch * sampler.steps_per_epoch() + position / batch;
      }
    }
    return -1;
  }
  std::unique_ptr<FakeSource> files_;
};

TEST_F(ReceiptDiffTest, NamesTheFirstEpochStepAndSample) {
  run("a", {});
  run("a5", {.batch = 5, .devices = 2});
  files_->replace(17, jpeg_file(31, 33, 1000));
  run("b", {.workers = 2});
  ReceiptDifference found = receipt_diff(path("a"), path("b"));
  EXPECT_FALSE(found.same);
  EXPECT_EQ(found.epoch, 0);
  EXPECT_EQ(found.step, step_of(17, 0, 8));
  EXPECT_EQ(found.sample, 17);
  EXPECT_THAT(found.text, StartsWith("they first differ in epoch 0, step " +
                                     std::to_string(found.step) + ", sample 17"));
  found = receipt_diff(path("a5"), path("b"));  // another global batch
  EXPECT_FALSE(found.same);
  EXPECT_EQ(found.step, step_of(17, 0, 10));
  EXPECT_EQ(found.sample, 17);
  EXPECT_THAT(found.text, HasSubstr("global_batch: 10 and 8"));
}

TEST_F(ReceiptDiffTest, FindsADifferenceInALaterEpoch) {
  run("a", {});
  run("b", {.steps = 8});  // one epoch and a step; an epoch has 7 steps
  files_->replace(30, jpeg_file(31, 33, 1000));
  run("b", {.first_step = 8});
  const ReceiptDifference found = receipt_diff(path("a"), path("b"));
  EXPECT_FALSE(found.same);
  const Step in_epoch_1 = step_of(30, 1, 8);
  EXPECT_EQ(found.epoch, in_epoch_1 >= 8 ? 1 : 2);
  EXPECT_EQ(found.step, in_epoch_1 >= 8 ? in_epoch_1 : step_of(30, 2, 8));
  EXPECT_EQ(found.sample, 30);
}

// Rows are set back as well: here they differed before the run was set back.
TEST_F(ReceiptDiffTest, RowsAreSetBackToo) {
  run("whole", {});
  SampleId id = 0;
  while (step_of(id, 0, 8) < 4) ++id;
  files_->replace(id, jpeg_file(31, 33, 1000));
  run("killed", {.steps = 9});
  files_ = jpeg_source(kSamples);
  run("killed", {.first_step = 4});
  expect_same_files("killed", "whole");
}

TEST_F(ReceiptDiffTest, ABadSampleInOneRunIsADifference) {
  run("a", {});
  run("a5", {.batch = 5});
  files_->replace(8, {});
  run("b", {});
  for (const char* good : {"a", "a5"}) {
    EXPECT_EQ(receipt_diff(path(good), path("b")).sample, 8);
    EXPECT_EQ(receipt_diff(path("b"), path(good)).sample, 8);
  }
}

TEST_F(ReceiptDiffTest, WithoutRowsTheStepIsNamed) {
  run("a", {.max_row_bytes = 10 * 8});
  run("a5", {.batch = 5});
  files_->replace(17, jpeg_file(31, 33, 1000));
  run("b", {.max_row_bytes = 10 * 8});
  const ReceiptDifference found = receipt_diff(path("a"), path("b"));
  EXPECT_EQ(found.step, step_of(17, 0, 8));
  if (found.step > 0) {
    EXPECT_THAT(found.text, HasSubstr("sample unknown"));
  }
  EXPECT_EQ(std::filesystem::file_size(path("a") + "/receipt_rows.bin"), 8u * 8);
  // Another batch, where one of the two has its rows.
  for (const auto& [one, other] : {std::pair("a5", "b"), std::pair("b", "a5")}) {
    const ReceiptDifference of_one = receipt_diff(path(one), path(other));
    EXPECT_FALSE(of_one.same);
    EXPECT_EQ(of_one.sample, -1) << one;
  }
}

TEST_F(ReceiptDiffTest, ComparesWhatBothHave) {
  run("three", {});
  run("one_and_a_half", {.steps = 10});
  const ReceiptDifference found = receipt_diff(path("three"), path("one_and_a_half"));
  EXPECT_TRUE(found.same);
  EXPECT_THAT(found.text, StartsWith("same: 2 common epochs"));
  run("other_batch", {.batch = 3, .steps = 25});
  EXPECT_TRUE(receipt_diff(path("three"), path("other_batch")).same);
}

TEST_F(ReceiptDiffTest, SaysWhichReceiptCannotBeRead) {
  run("a", {});
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { receipt_diff(path("a"), path("none")); }),
              HasSubstr("none"));
  std::filesystem::resize_file(path("a") + "/receipt_steps.bin", 40);
  EXPECT_THROW(receipt_diff(path("a"), path("a")), std::runtime_error);
}

TEST_F(ReceiptDiffTest, BelievesNoNumberInTheFile) {
  run("a", {});
  const nlohmann::json good = json("a");
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json bad = good;
    bad[key] = value;
    folder_.write("a/receipt.json", bad.dump());
    try {
      receipt_diff(path("a"), path("a"));
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("receipt"));
      return false;
    }
    return true;
  };
  EXPECT_TRUE(with("seed", 4));
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const char* key : {"first_step", "next_step", "rows_kept"}) {
    for (const int64_t value : {int64_t{-1}, kMax, kMax / 40}) {
      EXPECT_FALSE(with(key, value)) << key << " " << value;
    }
    EXPECT_FALSE(with(key, "many")) << key;
  }
  EXPECT_FALSE(with("world", "one"));
  EXPECT_FALSE(with("world", 1e38));
  EXPECT_FALSE(with("next_step", 1e38));
  EXPECT_FALSE(with("steps_per_epoch", nullptr));
  EXPECT_FALSE(with("policies", nlohmann::json::array()));
}

}  // namespace
}  // namespace stoker::testing
