// Where a Loader's batches are: in slots on the device, or in the ring itself.
#include <gtest/gtest.h>

#include "pipeline/loader.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/fake_device.h"

namespace stoker::testing {
namespace {

LoaderOptions slot_options(int workers) {
  LoaderOptions options;
  options.batch_size = 4;
  options.feed.workers = workers;
  return options;
}

class LoaderSlotsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Source> source_ = make_synthetic_source(30, {8, 8}, 3, 1);
  const AugmentSpec augment_ = pad_spec(8);
  const BatchLayout layout_{{.rows = 4,
                             .height = 8,
                             .width = 8,
                             .note_bytes_per_row = static_cast<int>(sizeof(RowNote))}};
};
using LoaderSlotsDeathTest = LoaderSlotsTest;

TEST_F(LoaderSlotsTest, TheMemoryPlanIsTheFormula) {
  LoaderOptions options = slot_options(2);
  options.ring_depth = 5;
  options.slots = 3;
  Feed feed(*source_, augment_, options, 2);
  const MemoryPlan plan = feed.loader().memory_plan();
  EXPECT_EQ(plan.ring_bytes, 2 * 5 * static_cast<int64_t>(layout_.slab_bytes()));
  EXPECT_EQ(plan.slot_bytes, 2 * 3 * static_cast<int64_t>(layout_.device_bytes()));
  EXPECT_GT(plan.scratch_bytes, 0);
}

// A host device's batch is the slab: no slots, no copies. A device whose memory the host cannot
// read gets two slots.
TEST_F(LoaderSlotsTest, SlotsAreChosenByTheDevice) {
  for (const bool host_accessible : {true, false}) {
    FakeDevice device({.host_accessible = host_accessible});
    const auto compute = device.make_stream();
    Loader loader(*source_, augment_, {&device}, slot_options(2));
    EXPECT_EQ(loader.memory_plan().slot_bytes,
              host_accessible ? 0 : 2 * static_cast<int64_t>(layout_.device_bytes()));
    while (loader.next(0, *compute)) {
    }
    compute->synchronize();
    EXPECT_EQ(device.copies(), host_accessible ? 0 : 8);
  }
}

// A borrowed stream that its owner has destroyed.
class GoneStream final : public Stream {
 public:
  void copy(void*, const void*, size_t, CopyKind) override { fail(); }
  void record(Event&) override { fail(); }
  void wait(const Event&) override { fail(); }
  void call(std::function<void()>) override { fail(); }
  void synchronize() override { fail(); }

 private:
  [[noreturn]] static void fail() { throw BorrowedStreamError("gone"); }
};

TEST_F(LoaderSlotsTest, AStepThatAStreamWouldNotHaveIsThereForAnother) {
  FakeDevice device({.host_accessible = false});
  const auto compute = device.make_stream();
  GoneStream gone;
  for (const int workers : {0, 2}) {
    for (const int slots : {0, 1, 2}) {
      LoaderOptions options = slot_options(workers);
      options.slots = slots;
      Loader loader(*source_, augment_, {&device}, options);
      Step step = 0;
      for (;; ++step) {
        if (step < loader.end_step()) {
          EXPECT_THROW(loader.next(0, gone), BorrowedStreamError);
        }
        const DeviceBatch batch = loader.next(0, *compute);
        if (!batch) break;
        EXPECT_EQ(batch.header().step, step);
      }
      EXPECT_EQ(step, loader.end_step()) << workers << " workers, " << slots << " slots";
    }
  }
}

// It must not wait for ever for the slab that the consumer itself holds.
TEST_F(LoaderSlotsDeathTest, InlineAskingForASecondBatchAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LoaderOptions options = slot_options(0);
  options.ring_depth = 1;
  const auto hold_and_ask = [&] {
    Feed feed(*source_, augment_, options);
    const DeviceBatch held = feed.loader().next(0, feed.stream(0));
    feed.loader().next(0, feed.stream(0));
  };
  EXPECT_DEATH(hold_and_ask(), "next\\(step 1\\): 1 of 1 slots are leased");
}

}  // namespace
}  // namespace stoker::testing
