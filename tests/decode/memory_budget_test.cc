#include "decode/memory_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "decode/aligned_buffer.h"
#include "decode/image_decoder.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/pixels.h"
#include "tests/support/wait_until.h"

namespace stoker {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(MemoryBudget, ALeaseTakesWhatItsOwnDoesNotHave) {
  MemoryBudget budget(100);
  MemoryLease lease(&budget, 10);
  lease.charge(10);
  EXPECT_EQ(budget.most_taken(), 0);
  lease.charge(60);
  EXPECT_EQ(budget.most_taken(), 60);
  EXPECT_EQ(lease.used(), 70);
  lease.refund(65);
  EXPECT_FALSE(lease.is_over_own());
  lease.give_back();
  lease.charge(105);
  EXPECT_EQ(budget.most_taken(), 100);
  EXPECT_EQ(lease.most(), 110);
}

TEST(MemoryBudget, WhatThereIsNotIsThrownAndNotCharged) {
  MemoryBudget budget(100);
  MemoryLease one(&budget, 0), other(&budget, 5);
  one.charge(80);
  other.charge(20);
  try {
    other.charge(6);
    ADD_FAILURE() << "there are 5 more";
  } catch (const OverBudget& over) {
    EXPECT_EQ(over.needed(), 26);
  }
  EXPECT_EQ(other.used(), 20);
  other.charge(5);
}

TEST(MemoryBudget, WhoNeedsLittleGoesBeforeWhoNeedsMuch) {
  MemoryBudget budget(100);
  MemoryLease holder(&budget, 0), large(&budget, 0), small(&budget, 0);
  holder.charge(50);
  std::atomic<bool> has_it = false;
  std::jthread waiting([&] { has_it = large.wait_for(90); });
  wait_until([&] { return budget.waits() == 1; });
  EXPECT_TRUE(small.wait_for(50));
  EXPECT_FALSE(has_it);
  small.give_back();
  holder.refund(50);
  holder.give_back();
  waiting.join();
  EXPECT_TRUE(has_it);
  EXPECT_EQ(budget.most_taken(), 100);
}

TEST(MemoryBudget, StoppingEndsTheWaiting) {
  MemoryBudget budget(100);
  MemoryLease holder(&budget, 0), other(&budget, 0);
  holder.charge(50);
  std::jthread stopping([&] {
    wait_until([&] { return budget.waits() == 1; });
    budget.stop();
  });
  EXPECT_FALSE(other.wait_for(60));
  EXPECT_FALSE(other.wait_for(1));
}

TEST(MemoryBudget, WithoutABudgetEverythingIsTheLeasesOwn) {
  MemoryLease lease(nullptr, 0);
  lease.charge(int64_t{1} << 40);
  EXPECT_FALSE(lease.is_over_own());
  EXPECT_TRUE(lease.wait_for(int64_t{1} << 41));
}

TEST(MemoryBudget, BuffersChargeTheLeaseOfTheirThread) {
  MemoryLease lease(nullptr, 0);
  ScratchVector<uint8_t> before(1000);
  {
    const LeaseScope scope(lease);
    AlignedBuffer<uint16_t> aligned;
    aligned.grow(500);
    ScratchVector<uint8_t> vector(3 * kMiB, 7);
    EXPECT_EQ(lease.used(), 1000 + 3 * kMiB);
    EXPECT_EQ(vector.back(), 7);
    aligned.grow(600);
    const ScratchCharge charge(99);
    EXPECT_EQ(lease.used(), 1200 + 3 * kMiB + 99);
    aligned.release();
    EXPECT_EQ(lease.used(), 3 * kMiB + 99);
  }
  EXPECT_EQ(lease.used(), 0);
  ScratchVector<uint8_t> after(1000);
  EXPECT_EQ(lease.used(), 0);
}

// Whatever a decoder meets, what it has been charged for is what it says that it holds.
TEST(MemoryBudget, ADecoderThatMayNotGoOnBeginsAgainWithTheSamePixels) {
  constexpr Size kSize{1200, 900};
  for (const JpegColours colours : {JpegColours::ycc, JpegColours::cmyk}) {
    const std::vector<uint8_t> file = make_jpeg(kSize, {.colours = colours, .progressive = true});
    const CropSpec spec{{0, 0, kSize.width, kSize.height}, {224, 224}, {0, 0, 224, 224}};
    Pixels expected({224, 224}), out({224, 224});
    ImageDecoder plain;
    ASSERT_TRUE(plain.decode(file, spec, expected.view()).ok());
    int failures = 0;
    for (int64_t bytes = kMiB;; bytes += kMiB) {
      MemoryBudget budget(bytes);
      MemoryLease lease(&budget, 0);
      const LeaseScope scope(lease);
      try {
        ImageDecoder decoder;
        ASSERT_TRUE(decoder.decode(file, spec, out.view()).ok());
        break;
      } catch (const OverBudget& over) {
        EXPECT_GT(over.needed(), bytes);
        EXPECT_EQ(lease.used(), 0) << "the decoder is gone";
        ++failures;
      }
      ASSERT_LT(bytes, 64 * kMiB);
    }
    EXPECT_GT(failures, 1);
    EXPECT_EQ(out.packed(), expected.packed());
  }
}

}  // namespace
}  // namespace stoker
