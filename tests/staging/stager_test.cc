// The Stager's behaviour for a consumer on a well-behaved device; early_reuse_test.cc uses the
// nasty one.
#include "staging/stager.h"

#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/staging/feed.h"
#include "tests/support/fake_device.h"
#include "tests/support/wait_until.h"

namespace stoker::testing {
namespace {

TEST(Stager, AnyNumberOfSlotsGivesTheSameBatches) {
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    for (int capacity : {1, 2, 4}) {
      auto device = make_host_device();
      StagedFeed feed(*device, {.slots = slots, .capacity = capacity, .first = 4, .end = 34});
      for (Step step = 4; step < 34; ++step) {
        DeviceBatch batch = feed.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(batch.shape(), small_shape());
        EXPECT_EQ(host_difference(batch, feed.ring.layout(), step), "");
        batch.synchronize();
        EXPECT_EQ(difference(DeviceView(batch), feed.ring.layout(), step), "");
      }
      EXPECT_FALSE(feed.next());
      EXPECT_FALSE(feed.next()) << "the end is the end";
      EXPECT_EQ(feed.stager.stats().snapshot().items, 30);
      EXPECT_EQ(feed.ring.stats().snapshot().items, 30);
    }
  }
}

TEST(Stager, DeviceMemoryIsAFormula) {
  BatchLayout layout(small_shape());
  for (const Staging& staging : every_staging()) {
    FakeDevice device({.host_accessible = staging.host_accessible});
    PinnedRing ring(device, layout, 1);
    Stager stager(device, ring, staging.slots, 0, 0);
    EXPECT_EQ(stager.device_bytes(),
              staging.zero_copy()
                  ? 0
                  : static_cast<int64_t>(layout.device_bytes()) * std::max(staging.slots, 1));
  }
}

TEST(Stager, NonsenseIsRejected) {
  auto device = make_host_device();
  PinnedRing ring(*device, BatchLayout(small_shape()), 1);
  EXPECT_THROW(Stager(*device, ring, -1, 0, 1), std::invalid_argument);
  EXPECT_THROW(Stager(*device, ring, 4, 0, 1), std::invalid_argument);
  EXPECT_THROW(Stager(*device, ring, 1, 5, 4), std::invalid_argument);
  EXPECT_THROW(Stager(*device, ring, 0, 0, 1, 0), std::invalid_argument);
  EXPECT_THROW(Stager(*device, ring, 0, 0, 1, ring.capacity() + 1), std::invalid_argument);
  EXPECT_FALSE(ring.stopped());
}

TEST(Stager, AFeedWithoutSteps) {
  auto device = make_host_device();
  auto compute = device->make_stream();
  for (int slots : {0, 2}) {
    PinnedRing ring(*device, BatchLayout(small_shape()), 1, 3);
    Stager stager(*device, ring, slots, 3, 3);
    EXPECT_FALSE(stager.next(*compute));
  }
}

static_assert(!std::is_copy_constructible_v<DeviceBatch>);
static_assert(!std::is_copy_assignable_v<DeviceBatch>);
static_assert(std::is_nothrow_move_constructible_v<DeviceBatch>);
static_assert(std::is_nothrow_move_assignable_v<DeviceBatch>);

TEST(DeviceBatch, MovesCarryTheLeaseAndAssignmentEndsTheOldOne) {
  auto device = make_host_device();
  StagedFeed feed(*device, {.slots = 2, .end = 6});
  DeviceBatch empty;
  EXPECT_FALSE(empty);
  DeviceBatch first = feed.next();
  DeviceBatch moved = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: empty after a move is the contract
  EXPECT_EQ(moved.header().step, 0);
  // At most two leases: each assignment must give the old one back, or the third would abort.
  for (Step step = 1; step < 5; ++step) {
    moved = feed.next();
    EXPECT_EQ(moved.header().step, step);
  }
  DeviceBatch& alias = moved;
  moved = std::move(alias);
  ASSERT_TRUE(moved) << "assigned to itself";
  EXPECT_EQ(moved.header().step, 4);
  moved = DeviceBatch();
  EXPECT_FALSE(moved);
  std::vector<DeviceBatch> batches;
  batches.push_back(feed.next());
  EXPECT_EQ(batches.front().header().step, 5);
}

TEST(DeviceBatch, AllSlotsMayBeLeasedAndGivenBackInAnyOrder) {
  auto device = make_host_device();
  StagedFeed feed(*device, {.slots = 3, .end = 12});
  for (Step step = 0; step < 12; step += 3) {
    DeviceBatch a = feed.next();
    DeviceBatch b = feed.next();
    DeviceBatch c = feed.next();
    c.synchronize();
    EXPECT_EQ(difference(DeviceView(a), feed.ring.layout(), step), "");
    EXPECT_EQ(difference(DeviceView(b), feed.ring.layout(), step + 1), "");
    EXPECT_EQ(difference(DeviceView(c), feed.ring.layout(), step + 2), "");
    b = DeviceBatch();
    a = DeviceBatch();
  }
}

// A host device that counts the memory that it allocates.
class CountingDevice final : public Device {
 public:
  const std::string& name() const override { return host_->name(); }
  bool host_accessible() const override { return true; }
  std::unique_ptr<Memory> allocate(size_t bytes, MemoryKind kind) override {
    if (most >= 0 && allocations >= most) throw std::bad_alloc();
    ++allocations;
    return host_->allocate(bytes, kind);
  }
  std::unique_ptr<Stream> make_stream() override { return host_->make_stream(); }
  std::unique_ptr<Event> make_event(bool timing) override { return host_->make_event(timing); }

  int allocations = 0;
  int most = -1;  // at most this many allocations; -1: any number

 private:
  const std::unique_ptr<Device> host_ = make_host_device();
};

TEST(DeviceBatch, WhatIsKeptOutlivesTheFeedAndTheFeedGoesOn) {
  CountingDevice device;
  const BatchLayout layout(small_shape());
  std::vector<std::shared_ptr<Memory>> kept;
  std::vector<DeviceView> views;
  {
    StagedFeed feed(device, {.end = 8});
    for (Step step = 0; step < 8; ++step) {
      DeviceBatch batch = feed.next();
      views.emplace_back(batch);
      kept.push_back(batch.keep());
      EXPECT_FALSE(batch);
      EXPECT_EQ(static_cast<const void*>(kept.back()->data()), views.back().images);
    }
    EXPECT_FALSE(feed.next());
  }
  for (Step step = 0; step < 8; ++step) {
    EXPECT_EQ(difference(views[static_cast<size_t>(step)], layout, step), "");
  }
  EXPECT_EQ(device.allocations, 2 + 8);
}

TEST(DeviceBatch, MemoryThatWasKeptAndCameBackIsUsedAgain) {
  CountingDevice device;
  StagedFeed feed(device, {.end = 40});
  std::shared_ptr<Memory> kept;  // the last one, always
  for (Step step = 0; step < 40; ++step) {
    DeviceBatch batch = feed.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(difference(DeviceView(batch), feed.ring.layout(), step), "");
    kept = batch.keep();
  }
  EXPECT_EQ(device.allocations, 2 + 2) << "one is held, one is on its way";
}

TEST(DeviceBatch, WithoutMemoryToReplaceItABatchStaysLeased) {
  CountingDevice device;
  StagedFeed feed(device, {.end = 3});
  device.most = device.allocations;
  DeviceBatch batch = feed.next();
  EXPECT_THROW(batch.keep(), std::bad_alloc);
  ASSERT_TRUE(batch);
  EXPECT_EQ(difference(DeviceView(batch), feed.ring.layout(), 0), "");
  batch = DeviceBatch();
  EXPECT_EQ(feed.next().header().step, 1);
  feed.ring.stop();
}

// After a feed's end, nothing replaces memory that is kept, neither for slots nor for the ring.
TEST(DeviceBatch, AfterTheFeedWasStoppedItMayBeKeptOnAnyDevice) {
  for (const int slots : {0, 1, 3}) {
    CountingDevice device;
    auto compute = device.make_stream();
    PinnedRing ring(device, BatchLayout(small_shape()), 2);
    std::shared_ptr<Memory> kept;
    {
      Producer producer(ring, 0, 9);
      Stager stager(device, ring, slots, 0, 9);
      DeviceBatch batch = stager.next(*compute);
      batch.synchronize();
      const DeviceView view(batch);
      const int before = device.allocations;
      ring.stop();
      kept = batch.keep();
      EXPECT_EQ(device.allocations, before);
      EXPECT_EQ(static_cast<const void*>(kept->data()), view.images);
    }
    const auto* images = reinterpret_cast<const uint8_t*>(kept->data());
    EXPECT_EQ(images[1], pixel_of(0, 1)) << slots << " slots";
  }
}

TEST(DeviceBatch, EachMayBeAskedForOnAnotherStream) {
  for (int slots : {0, 1, 2}) {
    auto device = make_host_device();
    std::unique_ptr<Stream> streams[] = {device->make_stream(), device->make_stream()};
    BatchLayout layout(small_shape());
    PinnedRing ring(*device, layout, 2);
    Producer producer(ring, 0, 40);
    Stager stager(*device, ring, slots, 0, 40);
    std::atomic<int> wrong{0};
    for (Step step = 0; step < 40; ++step) {
      Stream& compute = *streams[step % 2];
      DeviceBatch batch = stager.next(compute);
      compute.call([&, step, view = DeviceView(batch)] {
        wrong += difference(view, layout, step) != "" ? 1 : 0;
      });
    }
    for (auto& stream : streams) stream->synchronize();
    EXPECT_EQ(wrong, 0);
  }
}

// A fast stream may finish with its batch before a slow stream with an earlier one.
TEST(DeviceBatch, ASlowStreamsBatchIsNotGivenBackTwiceNorForgotten) {
  for (int slots : {0, 1, 2}) {
    for (bool wait_before_the_end : {true, false}) {
      std::atomic<bool> right{false};  // written until the stager ends
      auto device = make_host_device();
      auto slow = device->make_stream();
      auto quick = device->make_stream();
      BatchLayout layout(small_shape());
      PinnedRing ring(*device, layout, 4);
      Producer producer(ring, 0, 2);
      Stager stager(*device, ring, slots, 0, 2);
      {
        DeviceBatch batch = stager.next(*slow);
        slow->call([&, view = DeviceView(batch)] {
          be_late(std::chrono::microseconds(1000));
          right = difference(view, layout, 0) == "";
        });
      }
      EXPECT_EQ(stager.next(*quick).header().step, 1);
      if (!wait_before_the_end) continue;
      quick->synchronize();
      slow->synchronize();
      EXPECT_TRUE(right);
    }
  }
}

// Slabs that are leased in place and given back late and out of order, on different streams.
TEST(Stager, SlabsLeasedInPlaceMayGoBackInAnyOrder) {
  constexpr Step kEnd = 60;
  constexpr int kLeases = 3;
  auto device = make_host_device();
  auto quick = device->make_stream();
  auto slow = device->make_stream();
  BatchLayout layout(small_shape());
  PinnedRing ring(*device, layout, 4);
  Producer producer(ring, 0, kEnd);
  Stager stager(*device, ring, 0, 0, kEnd, kLeases);
  ASSERT_EQ(stager.max_leases(), kLeases);
  for (Step step = 0; step < kEnd; step += kLeases) {
    std::vector<DeviceBatch> held;
    for (Step i = step; i < step + kLeases; ++i) {
      held.push_back(stager.next(i % 2 == 0 ? *slow : *quick));
    }
    slow->call([] { be_late(std::chrono::microseconds(200)); });
    for (int i = 0; i < kLeases; ++i) {
      EXPECT_EQ(difference(DeviceView(held[static_cast<size_t>(i)]), layout, step + i), "");
    }
    std::swap(held[0], held[step % 2 == 0 ? 1 : 2]);
    while (!held.empty()) held.pop_back();  // the youngest first, or the middle one
  }
}

// The slab that a step needs is still leased, although another one was given back.
TEST(StagerDeathTest, ASlotLeasedStillAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto keep_the_first = [] {
    auto device = make_host_device();
    StagedFeed feed(*device, {.capacity = 4, .end = 4, .leases = 2});
    const DeviceBatch kept = feed.next();
    feed.next();
    feed.next();
  };
  EXPECT_DEATH(keep_the_first(), "next\\(step 2\\): 1 of 2 slots are leased, .* by step 0");
}

TEST(Stager, WaitsForABatchForSoLongOnly) {
  for (int slots : {0, 1, 2}) {
    auto device = make_host_device();
    auto compute = device->make_stream();
    BatchLayout layout(small_shape());
    PinnedRing ring(*device, layout, 4);
    Stager stager(*device, ring, slots, 0, 2);
    EXPECT_FALSE(stager.wait_ready(5)) << slots;
    ASSERT_TRUE(ring.wait_free(0));
    fill(ring.begin(0), layout, 0);
    ring.commit(0);
    EXPECT_TRUE(stager.wait_ready(60'000)) << slots;
    EXPECT_EQ(stager.next(*compute).header().step, 0) << slots;
    EXPECT_FALSE(stager.wait_ready(0)) << slots;
    EXPECT_GT(stager.stats().snapshot().input_wait_ns, 4'000'000) << slots;
    ring.stop();
    EXPECT_TRUE(stager.wait_ready(60'000)) << "stopped: next() does not wait; " << slots;
    EXPECT_FALSE(stager.next(*compute));
  }
}

TEST(StagerDeathTest, TooManyLeasesAbortWithAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto hold_all_and_ask = [](int slots) {
    auto device = make_host_device();
    StagedFeed feed(*device, {.slots = slots, .capacity = 4, .end = 4});
    std::vector<DeviceBatch> batches;
    for (int i = 0; i <= std::max(slots, 1); ++i) batches.push_back(feed.next());
  };
  EXPECT_DEATH(hold_all_and_ask(0), "next\\(step 1\\): 1 of 1 slots are leased");
  EXPECT_DEATH(hold_all_and_ask(1), "next\\(step 1\\): 1 of 1 slots are leased");
  EXPECT_DEATH(hold_all_and_ask(2), "next\\(step 2\\): 2 of 2 slots are leased");
}

TEST(StagerDeathTest, ALeaseThatOutlivesTheStagerAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto keep_too_long = [] {
    auto device = make_host_device();
    auto compute = device->make_stream();
    PinnedRing ring(*device, BatchLayout(small_shape()), 4);
    Producer producer(ring, 0, 4);
    DeviceBatch batch;
    Stager stager(*device, ring, 2, 0, 4);
    batch = stager.next(*compute);
  };
  EXPECT_DEATH(keep_too_long(), "1 DeviceBatch still alive");
}

TEST(Stager, TwoInOneProcess) {
  std::vector<std::thread> consumers;
  std::atomic<int> wrong{0};
  for (int index = 0; index < 2; ++index) {
    consumers.emplace_back([index, &wrong] {
      auto device = make_host_device(index);
      auto compute = device->make_stream();
      Step first = index * 50;
      PinnedRing ring(*device, BatchLayout(small_shape()), 2, first);
      Producer producer(ring, first, first + 50);
      Stager stager(*device, ring, 2, first, first + 50);
      Step step = first;
      while (DeviceBatch batch = stager.next(*compute)) {
        batch.synchronize();
        wrong += difference(DeviceView(batch), ring.layout(), step++) != "" ? 1 : 0;
      }
      wrong += step == first + 50 ? 0 : 1;
    });
  }
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_EQ(wrong, 0);
}

// Returns how many batches were copied completely while the first one's step computed, which goes
// on until `wanted` are there, or for a while.
int64_t batches_beside_a_step(int slots, int64_t wanted) {
  constexpr Step kSteps = 6;
  FakeDevice device({.max_delay_us = 0, .host_accessible = false});
  StagedFeed feed(device, {.slots = slots, .capacity = 4, .end = kSteps});
  std::binary_semaphore gate(0);
  {
    const DeviceBatch first = feed.next();
    first.synchronize();
    feed.compute->call([&] { gate.acquire(); });
  }
  const int64_t deadline_ns = steady_now_ns() + (slots > 1 ? 60'000'000'000 : 20'000'000);
  while (device.copies() < 1 + wanted && steady_now_ns() < deadline_ns) std::this_thread::yield();
  const int64_t copied = device.copies() - 1;
  gate.release();
  while (feed.next()) {
  }
  feed.compute->synchronize();
  EXPECT_EQ(device.copies(), kSteps) << "one copy per batch";
  return copied;
}

TEST(Stager, CopiesOverlapComputeFromTwoSlotsOn) {
  EXPECT_EQ(batches_beside_a_step(0, 1), 0) << "copies are behind the step, on its stream";
  EXPECT_EQ(batches_beside_a_step(1, 1), 0) << "the slot is in use";
  EXPECT_EQ(batches_beside_a_step(2, 1), 1);
  EXPECT_EQ(batches_beside_a_step(3, 2), 2);
}

TEST(Stager, StatsSayWhoWaitedForWhom) {
  FakeDevice device({.max_delay_us = 0});
  auto compute = device.make_stream();
  PinnedRing ring(device, BatchLayout(small_shape()), 2);
  Stager stager(device, ring, 2, 0, 8);
  std::thread late([&, consumer = gettid()] {
    EXPECT_TRUE(wait_until([&] { return is_asleep(consumer); }));  // in next()
    spin_for(std::chrono::milliseconds(2));
    Producer producer(ring, 0, 8);
  });
  stager.next(*compute);
  StageSnapshot starved = stager.stats().snapshot();
  EXPECT_EQ(starved.items, 1);
  EXPECT_GE(starved.input_wait_ns, 1'000'000);
  for (Step step = 1; step < 8; ++step) {
    DeviceBatch batch = stager.next(*compute);
    spin_for(std::chrono::milliseconds(1));
  }
  late.join();
  StageSnapshot sated = stager.stats().snapshot();
  EXPECT_EQ(sated.items, 8);
  EXPECT_GE(sated.output_wait_ns, 1'000'000) << "the slots were full while the consumer slept";
  EXPECT_GE(sated.occupancy_sum, 4);
  EXPECT_LE(sated.occupancy_sum, 16);
}

}  // namespace
}  // namespace stoker::testing
