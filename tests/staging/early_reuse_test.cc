// The fake device detects memory that is reused too early: slabs that are filled again while they
// are copied, slots that are overwritten while compute reads them, batches that are read before
// they have arrived. These tests fail if one of the Stager's waits is removed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "staging/stager.h"
#include "tests/staging/feed.h"
#include "tests/support/fake_device.h"
#include "tests/support/wait_until.h"

namespace stoker::testing {
namespace {

TEST(EarlyReuse, LateCopiesNeverMixBatches) {
  for (uint64_t seed : {1, 2, 3}) {
    for (const Staging& staging : every_staging()) {
      for (int capacity : {1, 3}) {
        SCOPED_TRACE(staging.name() + ", ring " + std::to_string(capacity));
        constexpr Step kSteps = 25;
        FakeDevice device(
            {.seed = seed, .max_delay_us = 100, .host_accessible = staging.host_accessible});
        BatchLayout layout(small_shape());
        std::vector<std::string> wrong;  // written only by compute's work
        {
          StagedFeed feed(device, {.slots = staging.slots, .capacity = capacity, .end = kSteps});
          for (Step step = 0; step < kSteps; ++step) {
            DeviceBatch batch = feed.next();
            ASSERT_TRUE(batch);
            // Slow work: the host is several steps ahead, and the lease has ended long before the
            // read.
            feed.compute->call([&, step, view = DeviceView(batch)] {
              be_late(std::chrono::microseconds(step % 3 * 150));
              std::string found = difference(view, layout, step);
              if (!found.empty()) wrong.push_back(found);
            });
            be_late(std::chrono::microseconds(step % 5 * 50));
            ASSERT_EQ(host_difference(batch, layout, step), "");
          }
          feed.compute->synchronize();
        }
        EXPECT_EQ(device.copies(), staging.zero_copy() ? 0 : kSteps);
        EXPECT_EQ(device.bytes_written_after_free(), 0);
        EXPECT_TRUE(wrong.empty())
            << wrong.size() << " of " << kSteps << " batches, first " << wrong.front();
      }
    }
  }
}

TEST(EarlyReuse, SynchronizeWaitsForALateCopy) {
  for (const Staging& staging : every_staging()) {
    SCOPED_TRACE(staging.name());
    FakeDevice device({.max_delay_us = 300, .host_accessible = staging.host_accessible});
    StagedFeed feed(device, {.slots = staging.slots, .end = 20});
    for (Step step = 0; step < 20; ++step) {
      DeviceBatch batch = feed.next();
      batch.synchronize();
      ASSERT_EQ(difference(DeviceView(batch), feed.ring.layout(), step), "");
    }
  }
}

// next() hands over by events: it must return before the copy has begun.
TEST(EarlyReuse, NextDoesNotWaitForTheCopy) {
  for (const Staging& staging : every_staging()) {
    SCOPED_TRACE(staging.name());
    FakeDevice device({.host_accessible = staging.host_accessible});
    device.hold_copies();
    StagedFeed feed(device, {.slots = staging.slots, .end = 1});
    auto next = std::async(std::launch::async, [&] { return feed.next(); });
    EXPECT_EQ(next.wait_for(std::chrono::seconds(5)), std::future_status::ready);
    EXPECT_EQ(device.copies(), 0);
    device.let_copies_go();
    DeviceBatch batch = next.get();
    EXPECT_EQ(host_difference(batch, feed.ring.layout(), 0), "");
    batch.synchronize();
    EXPECT_EQ(device.copies(), staging.zero_copy() ? 0 : 1);
  }
}

// Without slots on a host device the batch is the slab. It must return to a ring of one slab when
// the consumer's work is done, without another call: nothing asks for the next batch while this one
// is filled.
TEST(EarlyReuse, AZeroCopyLeaseIsTheSlabUntilTheStreamHasPassed) {
  FakeDevice device;
  auto compute = device.make_stream();
  PinnedRing ring(device, BatchLayout(small_shape()), 1);
  Stager stager(device, ring, 0, 0, 2);
  ASSERT_TRUE(ring.wait_free(0));
  const Slab& slab = fill(ring.begin(0), ring.layout(), 0);
  ring.commit(0);
  DeviceBatch batch = stager.next(*compute);
  EXPECT_EQ(batch.images(), slab.images);
  EXPECT_EQ(batch.labels(), slab.labels);
  EXPECT_EQ(batch.weights(), slab.weights);
  EXPECT_EQ(batch.ids(), slab.ids);
  EXPECT_EQ(batch.notes(), slab.notes);
  EXPECT_EQ(&batch.header(), slab.header);
  EXPECT_EQ(stager.device_bytes(), 0);

  std::promise<void> work;
  compute->call([&] { work.get_future().wait(); });
  auto free = std::async(std::launch::async, [&] { return ring.wait_free(1); });
  const auto soon = std::chrono::milliseconds(20);
  EXPECT_EQ(free.wait_for(soon), std::future_status::timeout) << "the slab is leased";
  batch = {};
  EXPECT_EQ(free.wait_for(soon), std::future_status::timeout) << "work that reads it is queued";
  work.set_value();
  EXPECT_TRUE(free.get());
}

TEST(FakeDevice, CopiesComeLateAndPoisonTheirTarget) {
  FakeDevice device;
  device.hold_copies();
  auto memory = device.allocate(8, MemoryKind::device);
  EXPECT_EQ(memory->data()[5], std::byte{FakeDevice::kFresh});
  auto stream = device.make_stream();
  std::vector<unsigned char> source(8, 1);
  stream->copy(memory->data(), source.data(), 8, CopyKind::host_to_device);
  std::fill(source.begin(), source.end(), static_cast<unsigned char>(2));  // too early
  device.let_copies_go();
  stream->synchronize();
  EXPECT_EQ(memory->data()[5], std::byte{2});
}

TEST(FakeDevice, FreedMemoryIsWatched) {
  FakeDevice device;
  auto memory = device.allocate(8, MemoryKind::device);
  std::byte* data = memory->data();
  memory.reset();
  EXPECT_EQ(data[0], std::byte{FakeDevice::kFreed});
  EXPECT_EQ(device.bytes_written_after_free(), 0);
  data[3] = std::byte{0};
  EXPECT_EQ(device.bytes_written_after_free(), 1);
}

}  // namespace
}  // namespace stoker::testing
