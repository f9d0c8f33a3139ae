#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "train/run/batch_shape.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

BatchLimits limits(int64_t memory, int64_t step, int64_t most) {
  BatchLimits result;
  result.step = step;
  result.most_rows = most;
  result.memory_bytes = memory;
  result.bytes = [](int64_t rows) { return 1000 + 10 * rows; };
  result.memory_name = "some of the memory";
  result.most_name = "the 999 samples";
  return result;
}

TEST(BatchSize, IsTheLargestThatFits) {
  for (int64_t memory = 1080; memory < 3000; memory += 7) {
    const BatchChoice choice = largest_batch(limits(memory, 8, 100'000));
    EXPECT_EQ(choice.rows, (memory - 1000) / 80 * 8) << memory;
    EXPECT_THAT(choice.reason, HasSubstr(std::to_string(choice.rows + 8) + " samples would take"));
  }
}

TEST(BatchSize, IsNoMoreThanMakesSense) {
  const BatchChoice choice = largest_batch(limits(int64_t{1} << 40, 8, 999));
  EXPECT_EQ(choice.rows, 992);
  EXPECT_THAT(choice.reason, HasSubstr("because of the 999 samples"));
  EXPECT_EQ(largest_batch(limits(int64_t{1} << 40, 8, 3)).rows, 8);  // one step, padded
}

TEST(BatchSize, SaysWhatIsMissing) {
  try {
    largest_batch(limits(1079, 8, 999));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("not even 8 samples"));
    EXPECT_THAT(error.what(), HasSubstr("some of the memory"));
  }
}

TEST(BatchSize, TheMachineHasMemory) {
  EXPECT_GT(free_host_bytes(), int64_t{1} << 20);
  EXPECT_LT(free_host_bytes(), int64_t{1} << 50);
}

}  // namespace
}  // namespace stoker
