#include "staging/pinned_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/staging/feed.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using std::chrono::milliseconds;

class PinnedRingTest : public ::testing::Test {
 protected:
  void pass(PinnedRing& ring, Step step) {
    ring.begin(step);
    ring.commit(step);
    ASSERT_NE(ring.take(step), nullptr);
    ring.release(step);
  }

  std::unique_ptr<Device> device_ = make_host_device();
  BatchLayout layout_{small_shape()};
};

template <typename Result>
bool blocks(std::future<Result>& future) {
  return future.wait_for(milliseconds(20)) == std::future_status::timeout;
}

TEST_F(PinnedRingTest, SlabsAreAddressedByStepAndLaidOutAsTheLayoutSays) {
  PinnedRing ring(*device_, layout_, 3, 7);
  EXPECT_EQ(ring.capacity(), 3);
  EXPECT_EQ(ring.layout().shape(), small_shape());
  std::vector<std::byte*> bases;
  for (Step step = 7; step < 13; ++step) {
    ASSERT_TRUE(ring.wait_free(step));
    Slab& slab = ring.begin(step);
    EXPECT_EQ(reinterpret_cast<std::byte*>(slab.images), slab.base);
    EXPECT_EQ(reinterpret_cast<std::byte*>(slab.labels), slab.base + layout_.labels_offset());
    EXPECT_EQ(reinterpret_cast<std::byte*>(slab.weights), slab.base + layout_.weights_offset());
    EXPECT_EQ(reinterpret_cast<std::byte*>(slab.ids), slab.base + layout_.ids_offset());
    EXPECT_EQ(slab.notes, slab.base + layout_.notes_offset());
    EXPECT_EQ(reinterpret_cast<std::byte*>(slab.header), slab.base + layout_.header_offset());
    EXPECT_EQ(slab.header->step, step);
    EXPECT_EQ(slab.header->valid, 0) << "left over from an older step";
    slab.header->valid = 2;
    bases.push_back(slab.base);
    int64_t before_ns = steady_now_ns();
    ring.commit(step);
    Slab* taken = ring.take(step);
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(taken->base, slab.base);
    EXPECT_GE(taken->header->ready_ns, before_ns);
    ring.release(step);
  }
  EXPECT_NE(bases[0], bases[1]);
  EXPECT_NE(bases[1], bases[2]);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(bases[i], bases[i + 3]);
}

TEST_F(PinnedRingTest, StepsMayBeFilledInAnyOrderAndAreTakenInOrder) {
  PinnedRing ring(*device_, layout_, 3);
  for (Step step : {2, 0, 1}) {
    ASSERT_TRUE(ring.wait_free(step));
    ring.begin(step).header->epoch = step;
  }
  ring.commit(2);
  auto taken = std::async(std::launch::async, [&] { return ring.take(0)->header->epoch; });
  EXPECT_TRUE(blocks(taken));
  ring.commit(0);
  EXPECT_EQ(taken.get(), 0);
  ring.commit(1);
  for (Step step : {1, 2}) EXPECT_EQ(ring.take(step)->header->epoch, step);
  for (Step step : {0, 1, 2}) ring.release(step);
}

TEST_F(PinnedRingTest, WaitFreeBlocksUntilTheSlabIsReleased) {
  PinnedRing ring(*device_, layout_, 2);
  for (Step step : {0, 1}) {
    ring.begin(step);
    ring.commit(step);
  }
  auto five = std::async(std::launch::async, [&] { return ring.wait_free(5); });
  EXPECT_TRUE(blocks(five));  // waits first, but need not wake first
  auto two = std::async(std::launch::async, [&] { return ring.wait_free(2); });
  EXPECT_TRUE(blocks(two));
  ring.take(0);
  EXPECT_TRUE(blocks(two));
  ring.release(0);
  EXPECT_TRUE(two.get());
  ring.take(1);
  ring.release(1);
  EXPECT_TRUE(blocks(five)) << "step 3 comes before 5";
  pass(ring, 2);
  pass(ring, 3);
  EXPECT_TRUE(five.get());
}

TEST_F(PinnedRingTest, StopWakesEveryoneAndIsSticky) {
  PinnedRing ring(*device_, layout_, 1);
  EXPECT_FALSE(ring.stopped());
  auto taken = std::async(std::launch::async, [&] { return ring.take(0); });
  EXPECT_TRUE(blocks(taken));
  auto free = std::async(std::launch::async, [&] { return ring.wait_free(1); });
  EXPECT_TRUE(blocks(free));
  ring.begin(0);
  ring.stop();
  EXPECT_EQ(taken.get(), nullptr);
  EXPECT_FALSE(free.get());
  ring.commit(0);  // a slab that was begun may be committed
  EXPECT_TRUE(ring.stopped());
  EXPECT_FALSE(ring.wait_free(1));
  EXPECT_EQ(ring.take(0), nullptr) << "also when the slab is ready";
  ring.stop(std::make_exception_ptr(std::runtime_error("too late")));
  EXPECT_EQ(ring.take(0), nullptr);
}

TEST_F(PinnedRingTest, TheFirstErrorReachesTheTakerEveryTime) {
  PinnedRing ring(*device_, layout_, 2);
  auto taken = std::async(std::launch::async, [&] { ring.take(0); });
  EXPECT_TRUE(blocks(taken));
  ring.stop(std::make_exception_ptr(std::runtime_error("first")));
  ring.stop(std::make_exception_ptr(std::runtime_error("second")));
  ring.stop();
  EXPECT_THROW(taken.get(), std::runtime_error);
  EXPECT_FALSE(ring.wait_free(0));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { ring.take(0); }), "first");
  }
  EXPECT_THROW(ring.stopped(), std::runtime_error);
}

TEST_F(PinnedRingTest, ManyFillersAndOneTaker) {
  constexpr Step kSteps = 300;
  PinnedRing ring(*device_, layout_, 4);
  std::atomic<Step> next{0};
  std::vector<std::thread> fillers;
  for (int i = 0; i < 3; ++i) {
    fillers.emplace_back([&] {
      for (Step step; (step = next.fetch_add(1)) < kSteps && ring.wait_free(step);) {
        fill(ring.begin(step), layout_, step);
        ring.commit(step);
      }
    });
  }
  for (Step step = 0; step < kSteps; ++step) {
    Slab* slab = ring.take(step);
    ASSERT_NE(slab, nullptr);
    ASSERT_EQ(slab->header->step, step);
    ASSERT_EQ(slab->labels[1], step * 100 + 1);
    ring.release(step);
  }
  for (std::thread& filler : fillers) filler.join();
}

// On a busy machine the thread that is to wait may come too late to do so: there are as many rounds
// as it needs.
constexpr Step kRounds = 500;

TEST_F(PinnedRingTest, StatsSayThatTheTakerWaited) {
  PinnedRing ring(*device_, layout_, 2);
  Step step = 0;
  for (; step < kRounds && ring.stats().snapshot().input_wait_ns == 0; ++step) {
    auto taken = std::async(std::launch::async, [&] { return ring.take(step); });
    EXPECT_TRUE(blocks(taken));
    ring.begin(step);
    ring.commit(step);
    taken.get();
    ring.release(step);
  }
  const StageSnapshot seen = ring.stats().snapshot();
  EXPECT_EQ(seen.items, step);
  EXPECT_EQ(seen.occupancy_sum, step - 1) << "nothing was ready for the take that waited";
  EXPECT_GT(seen.input_wait_ns, 0);
  EXPECT_EQ(seen.output_wait_ns, 0);
}

TEST_F(PinnedRingTest, StatsSayThatTheGiverWaited) {
  PinnedRing ring(*device_, layout_, 2);
  pass(ring, 0);
  ring.begin(1);
  ring.commit(1);
  Step step = 2;
  for (; step < kRounds && ring.stats().snapshot().output_wait_ns == 0; ++step) {
    ring.begin(step);
    ring.commit(step);
    auto free = std::async(std::launch::async, [&] { return ring.wait_free(step + 1); });
    EXPECT_TRUE(blocks(free));
    ring.take(step - 1);
    ring.release(step - 1);
    EXPECT_TRUE(free.get());
  }
  const StageSnapshot seen = ring.stats().snapshot();
  EXPECT_EQ(seen.items, step - 1);
  EXPECT_EQ(seen.occupancy_sum, 1 + 2 * (step - 2)) << "two were ready for all but the first";
  EXPECT_GT(seen.output_wait_ns, 0);
  EXPECT_EQ(seen.input_wait_ns, 0);
}

// Returns the share of the memory's pages that are there.
double resident(const std::byte* base, size_t bytes) {
  constexpr size_t kPage = 4096;
  std::vector<unsigned char> pages(bytes / kPage);
  const auto begin = reinterpret_cast<uintptr_t>(base) / kPage * kPage;
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), pages.size() * kPage, pages.data()), 0);
  const auto there = std::ranges::count_if(pages, [](unsigned char page) { return page & 1; });
  return static_cast<double>(there) / static_cast<double>(pages.size());
}

// The host, and what was allocated there.
class NotingDevice final : public Device {
 public:
  const std::string& name() const override { return host_->name(); }
  bool host_accessible() const override { return true; }
  std::unique_ptr<Memory> allocate(size_t bytes, MemoryKind kind) override {
    auto memory = host_->allocate(bytes, kind);
    places.push_back(memory->data());
    return memory;
  }
  std::unique_ptr<Stream> make_stream() override { return host_->make_stream(); }
  std::unique_ptr<Event> make_event(bool timing) override { return host_->make_event(timing); }

  std::vector<const std::byte*> places;

 private:
  const std::unique_ptr<Device> host_ = make_host_device();
};

// A feed of float images has hundreds of megabytes: its construction does not wait for their pages,
// and rows are not filled into pages that are missing.
TEST_F(PinnedRingTest, ASlabOfTheHostGetsItsPagesWithItsFirstStep) {
  const BatchLayout layout({.rows = 64, .height = 512, .width = 512});  // more than malloc keeps
  NotingDevice device;
  PinnedRing ring(device, layout, 3);
  const size_t bytes = layout.slab_bytes();
  ASSERT_EQ(device.places.size(), 3U);
  constexpr double kHeader = 0.1;  // a huge page with it
  for (const std::byte* place : device.places) EXPECT_LT(resident(place, bytes), kHeader);
  const std::byte* base = ring.begin(0).base;
  EXPECT_EQ(base, device.places[0]);
  EXPECT_EQ(resident(base, bytes), 1.0);
  EXPECT_LT(resident(device.places[1], bytes), kHeader);
  ring.commit(0);
  ASSERT_NE(ring.take(0), nullptr);
  const auto given = ring.give_away(0);
  ASSERT_EQ(device.places.size(), 4U);
  EXPECT_EQ(resident(device.places[3], bytes), 1.0) << "what is in its place";
  ring.release(0);
}

TEST_F(PinnedRingTest, NonsenseIsRejected) {
  EXPECT_THROW(PinnedRing(*device_, layout_, 0), std::invalid_argument);
  EXPECT_THROW(PinnedRing(*device_, layout_, 2, -1), std::invalid_argument);
}

class PinnedRingDeathTest : public PinnedRingTest {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(PinnedRingDeathTest, ABrokenLifeCycleAbortsWithStepAndState) {
  PinnedRing ring(*device_, layout_, 2);
  pass(ring, 0);
  EXPECT_DEATH(ring.commit(2), "commit\\(step 2\\).* free for step 2, expected filling");
  EXPECT_DEATH(ring.begin(0), "begin\\(step 0\\).* free for step 2");
  EXPECT_DEATH(ring.begin(4), "begin\\(step 4\\).* free for step 2");
  EXPECT_DEATH(ring.wait_free(0), "wait_free\\(step 0\\).*begun already");
  EXPECT_DEATH(ring.take(2), "take\\(step 2\\).*next is 1");
  EXPECT_DEATH(ring.release(1), "release\\(step 1\\).* free for step 1, expected copying");
  ring.begin(1);
  EXPECT_DEATH(ring.begin(1), "begin\\(step 1\\).* filling for step 1, expected free");
  ring.commit(1);
  EXPECT_DEATH(ring.commit(1), "commit\\(step 1\\).* ready for step 1");
  ring.take(1);
  EXPECT_DEATH(ring.take(1), "next is 2");
  EXPECT_DEATH(ring.commit(1), "copying for step 1");
  ring.release(1);
}

TEST_F(PinnedRingDeathTest, DestroyingARingInUseAborts) {
  EXPECT_DEATH(
      {
        PinnedRing ring(*device_, layout_, 2);
        ring.begin(0);
      },
      "~PinnedRing\\(step 0\\).*still filling");
  EXPECT_DEATH(
      {
        PinnedRing ring(*device_, layout_, 2);
        ring.begin(0);
        ring.commit(0);
        ring.take(0);
      },
      "~PinnedRing\\(step 0\\).*still copying");
}

}  // namespace
}  // namespace stoker::testing
