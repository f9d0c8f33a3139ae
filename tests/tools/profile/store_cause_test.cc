// Why a store delivers no more: the cause that made-up counts have, and the change that it needs.
#include "tools/profile/store_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/store/store_options.h"

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A store that gives 1,000 ranges of 110 KB, 32 at once, as fast as the network carries them.
StoreStats sound() {
  return {.requests = 1000,
          .ranges = 1000,
          .bytes = 110'000'000,
          .requests_wanted = 32,
          .requests_most = StoreOptions::kMaxRequests,
          .window_bytes = int64_t{256} << 20,
          .first_byte_ms_median = 4,
          .total_ms_median = 20,
          .bytes_per_second = 1e8,
          .requests_per_second = 900};
}

TEST(StoreCause, TheBytesTakeTheTime) {
  const StoreFinding finding = find_store_cause(sound());
  EXPECT_EQ(finding.cause, StoreCause::bandwidth);
  EXPECT_THAT(finding.text, HasSubstr("100.0 MB/s"));
}

TEST(StoreCause, TheStoreAnswersNoMoreRequests) {
  StoreStats stats = sound();
  stats.first_byte_ms_median = 18;
  EXPECT_EQ(find_store_cause(stats).cause, StoreCause::answers);
  EXPECT_THAT(find_store_cause(stats).cures, Contains(HasSubstr("larger ranges")));
  stats.bytes *= 10;  // of ranges that are large already
  EXPECT_EQ(find_store_cause(stats).cause, StoreCause::bandwidth);
}

TEST(StoreCause, ItToldToSlowDown) {
  StoreStats stats = sound();
  stats.throttled = 9;
  EXPECT_EQ(find_store_cause(stats).cause, StoreCause::bandwidth);
  stats.throttled = 11;
  EXPECT_EQ(find_store_cause(stats).cause, StoreCause::throttled);
}

TEST(StoreCause, AllRequestsThatAreAllowedAreUnderWay) {
  StoreStats stats = sound();
  stats.requests_most = 32;
  const StoreFinding finding = find_store_cause(stats);
  EXPECT_EQ(finding.cause, StoreCause::requests);
  EXPECT_THAT(finding.cures.front(), HasSubstr("--store-requests 0"));
  stats.requests_wanted = stats.requests_most = StoreOptions::kMaxRequests;
  EXPECT_THAT(find_store_cause(stats).cures, Not(Contains(HasSubstr("--store-requests"))));
}

TEST(StoreCause, TheMemoryIsFull) {
  StoreStats stats = sound();
  stats.window_bytes = 4 << 20;
  const StoreFinding finding = find_store_cause(stats);
  EXPECT_EQ(finding.cause, StoreCause::memory);
  EXPECT_THAT(finding.cures.front(), HasSubstr("--store-memory 8"));
}

}  // namespace
}  // namespace stoker
