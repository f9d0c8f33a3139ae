#include "staging/stager.h"

#include <gtest/gtest.h>

#include "tests/staging/feed.h"

namespace stoker::testing {
namespace {

TEST(Stager, AnyNumberOfSlotsGivesTheSameBatches) {
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    for (int capacity : {1, 2, 4}) {
      auto device = make_host_device();
      auto compute = device->make_stream();
      PinnedRing ring(*device, BatchLayout(small_shape()), capacity, 4);
      Producer producer(ring, 4, 34);
      Stager stager(*device, ring, slots, 4, 34);
      for (Step step = 4; step < 34; ++step) {
        DeviceBatch batch = stager.next(*compute);
        ASSERT_TRUE(batch);
        batch.synchronize();
        EXPECT_EQ(difference(batch, ring.layout(), step), "");
        EXPECT_EQ(host_difference(batch, ring.layout(), step), "");
      }
      EXPECT_FALSE(stager.next(*compute));
      EXPECT_FALSE(stager.next(*compute));
      EXPECT_EQ(stager.stats().snapshot().items, 30);
    }
  }
}

}  // namespace
}  // namespace stoker::testing
