// Memory for samples of all lengths: what is used again, and how much lies idle.
#include "pipeline/source/blob/buffer_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/sanitizers.h"

namespace stoker {
namespace {

TEST(BufferPool, UsesABufferAgainForASampleThatNearlyFillsIt) {
  BufferPool pool(1 << 20);
  uint8_t* first = nullptr;
  {
    const BufferPool::Buffer buffer = pool.take(200'000);
    first = buffer.get();
  }
  EXPECT_GE(pool.idle_bytes(), 200'000);
  const BufferPool::Buffer same = pool.take(190'000);
  EXPECT_EQ(same.get(), first);
  EXPECT_EQ(pool.idle_bytes(), 0);
}

TEST(BufferPool, DoesNotSpendALargeBufferOnASmallSample) {
  BufferPool pool(1 << 20);
  uint8_t* large = nullptr;
  {
    const BufferPool::Buffer buffer = pool.take(200'000);
    large = buffer.get();
  }
  const BufferPool::Buffer small = pool.take(100'000);
  EXPECT_NE(small.get(), large);
  EXPECT_GE(pool.idle_bytes(), 200'000);
}

// A buffer that is larger than the sample by more than an eighth is left to others.
TEST(BufferPool, HasLittleSlack) {
  for (const int64_t size : {3000, 10'000, 60'000, 100'000, 1'000'000}) {
    BufferPool pool(4 << 20);
    pool.take(size);
    const int64_t capacity = pool.idle_bytes();
    EXPECT_GE(capacity, size);
    EXPECT_LE(capacity, size + size / 16) << size;
    const BufferPool::Buffer nearly = pool.take(size * 9 / 10);
    EXPECT_EQ(pool.idle_bytes(), 0) << size;
    const BufferPool::Buffer half = pool.take(size / 2);
    EXPECT_EQ(pool.idle_bytes(), 0) << size;
    { const BufferPool::Buffer again = pool.take(size); }
    const BufferPool::Buffer small = pool.take(size * 3 / 4);
    EXPECT_EQ(pool.idle_bytes(), capacity) << size;
  }
}

TEST(BufferPool, KeepsNoMoreIdleBytesThanItMay) {
  BufferPool pool(300'000);
  {
    std::vector<BufferPool::Buffer> buffers;
    for (int i = 0; i < 10; ++i) buffers.push_back(pool.take(100'000));
  }
  EXPECT_LE(pool.idle_bytes(), 300'000);
  EXPECT_GE(pool.idle_bytes(), 200'000);
}

// An idle buffer makes room for what is in use, the largest first.
TEST(BufferPool, HasAsManyIdleBytesAsThereIsRoomForBesideThoseInUse) {
  BufferPool pool(100'000);
  {
    const BufferPool::Buffer small = pool.take(10'000);
    const BufferPool::Buffer large = pool.take(30'000);
  }
  const int64_t both = pool.idle_bytes();
  EXPECT_GE(both, 40'000);
  const BufferPool::Buffer some = pool.take(50'000);
  EXPECT_EQ(pool.idle_bytes(), both);
  const BufferPool::Buffer more = pool.take(20'000);
  EXPECT_GE(pool.idle_bytes(), 10'000);
  EXPECT_LT(pool.idle_bytes(), 11'000);
  const BufferPool::Buffer too_much = pool.take(60'000);
  EXPECT_EQ(pool.idle_bytes(), 0);
  { const BufferPool::Buffer again = pool.take(5'000); }
  EXPECT_EQ(pool.idle_bytes(), 0);
}

// A long buffer is made of one that is a little too short, and keeps what it had.
TEST(BufferPool, MakesAShorterBufferLonger) {
  BufferPool pool(4 << 20);
  {
    const BufferPool::Buffer shortest = pool.take(100'000), shorter = pool.take(700'000),
                             longer = pool.take(1'500'000);
    std::memset(shorter.get(), 7, 700'000);
  }
  const int64_t idle = pool.idle_bytes();
  const BufferPool::Buffer buffer = pool.take(1'000'000);
  EXPECT_EQ(std::count(buffer.get(), buffer.get() + 700'000, 7), 700'000);
  EXPECT_LE(pool.idle_bytes(), idle - 700'000);
  EXPECT_GE(pool.idle_bytes(), idle - 700'000 - 4096);
}

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// As a window of samples takes and returns memory: in bursts, about in order, single samples and
// blocks of them. Most pages are used again.
TEST(BufferPool, SeldomTakesNewPages) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer has pages of its own";
  constexpr int64_t kWindow = 16 << 20, kPage = 4096;
  for (const int64_t least : {60'000, 500'000}) {
    BufferPool pool(kWindow + kWindow / 4);
    std::mt19937 random(1);
    std::deque<std::pair<BufferPool::Buffer, int64_t>> held;
    int64_t bytes = 0, pages = 0, faults = 0;
    const auto take = [&] {
      const int64_t size = least + static_cast<int64_t>(random()) % (3 * least / 2);
      const int64_t before = page_faults();
      held.emplace_back(pool.take(size), size);
      for (int64_t at = 0; at < size; at += kPage) held.back().first.get()[at] = 1;
      faults += page_faults() - before;
      pages += size / kPage;
      bytes += size;
    };
    while (bytes < kWindow) take();
    pages = faults = 0;
    for (int i = 0; i < 2000; ++i) {
      if (bytes >= kWindow) {
        for (; bytes > kWindow / 8 * 7; held.pop_front()) bytes -= held.front().second;
      }
      take();
    }
    EXPECT_LT(faults, pages / 5) << "of " << least << " bytes and more";
  }
}

TEST(BufferPool, MovesABuffer) {
  BufferPool pool(1 << 20);
  BufferPool::Buffer buffer = pool.take(10);
  uint8_t* const data = buffer.get();
  BufferPool::Buffer other = std::move(buffer);
  EXPECT_EQ(other.get(), data);
  EXPECT_EQ(buffer.get(), nullptr);
  other = pool.take(20);
  EXPECT_GT(pool.idle_bytes(), 0);  // the first one is back
}

TEST(BufferPool, GivesEachThreadItsOwnBytes) {
  BufferPool pool(1 << 20);
  const auto fill = [&pool](unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < 300; ++round) {
      // Lengths on both sides of the border between malloc() and mappings.
      const auto size = static_cast<size_t>(1 + random() % 150'000);
      const BufferPool::Buffer buffer = pool.take(static_cast<int64_t>(size));
      const auto value = static_cast<uint8_t>(random());
      std::memset(buffer.get(), value, size);
      std::this_thread::yield();
      for (size_t i = 0; i < size; i += 97) ASSERT_EQ(buffer.get()[i], value);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(fill, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.idle_bytes(), 1 << 20);
}

}  // namespace
}  // namespace stoker
