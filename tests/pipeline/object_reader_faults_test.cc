// ObjectReader on a server whose answers fail: what is tried again, what is asked for a second
// time, what is an error at once. And many ranges from several threads with faults at random.
#include <gmock/gmock.h>

#include <cstring>
#include <list>
#include <random>
#include <thread>

#include "pipeline/store/hedge_rule.h"
#include "pipeline/store/object_reader.h"
#include "staging/mutex.h"
#include "tests/pipeline/object_reader_support.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class FaultyReaderTest : public ObjectReaderTest {
 protected:
  // Reads of /slow, of which some requests stall, and returns what was counted. When these go on,
  // they do not write any more.
  StoreStats read_past_stalls() {
    Asked slow(5000, 100'000);
    reader_->read(slow_, 5000, slow.out, false, slow.done());
    EXPECT_EQ(slow.wait(), "");
    EXPECT_TRUE(is_right(slow));
    const StoreStats stats = reader_->stats();
    std::memset(slow.out.data(), 0, slow.out.size());
    server_.release();
    read_well(object_, 0, 1000);
    EXPECT_EQ(slow.out, std::vector<uint8_t>(slow.out.size()));
    EXPECT_EQ(slow.calls, 1);
    return stats;
  }
};

TEST_F(FaultyReaderTest, WhatFailsIsTriedAgain) {
  const Kind kinds[] = {Kind::close,       Kind::cut,       Kind::reset,
                        Kind::wrong_range, Kind::too_short, Kind::too_long,
                        Kind::chunked_cut, Kind::no_length, Kind::status};
  for (const Kind kind : kinds) {
    open();
    fail_first({.kind = kind, .status = 500});
    read_well(object_, 1000, 100'000);
    const StoreStats stats = reader_->stats();
    // The client itself asks anew for an answer in an unusual form.
    const int counted = kind == Kind::chunked_cut || kind == Kind::no_length ? 0 : 1;
    EXPECT_EQ(stats.retries, counted) << static_cast<int>(kind);
    EXPECT_EQ(stats.requests - stats.second_requests, 1 + counted) << static_cast<int>(kind);
    EXPECT_EQ(stats.ranges, 1);
    EXPECT_EQ(stats.throttled, 0);
    EXPECT_EQ(stats.failed, 0);
  }
}

TEST_F(FaultyReaderTest, WhatIsOddButRightIsTaken) {
  for (const Kind kind : {Kind::whole, Kind::chunked, Kind::slow}) {
    open();
    fail_first({.kind = kind});
    read_well(object_, 1000, 100'000);
    EXPECT_EQ(reader_->stats().retries, 0);
  }
}

TEST_F(FaultyReaderTest, TriesAreUsedUp) {
  open({.tries = 3});
  fail_first({.kind = Kind::status, .status = 500}, 1000);
  Asked asked(1000, 100'000);
  reader_->read(object_, 1000, asked.out, false, asked.done());
  EXPECT_THAT(asked.wait(),
              MatchesRegex("test://server/object: its bytes from 1000 to 101000 could not be read: "
                           "3 tries in [0-9]{1,2}\\.[0-9] s, the last: 500; look whether .*"));
  const StoreStats stats = reader_->stats();
  EXPECT_EQ(stats.retries, 2);
  EXPECT_EQ(stats.failed, 1);
  EXPECT_EQ(stats.ranges, 0);
  EXPECT_EQ(server_.requests(), stats.requests);
  EXPECT_EQ(asked.calls, 1);
}

TEST_F(FaultyReaderTest, WhatHasChangedOrIsRefusedIsAnErrorAtOnce) {
  open();
  const StoredObject older{"/object", 2'000'000, "\"v0\""};
  Asked changed(0, 1000);
  reader_->read(older, 0, changed.out, false, changed.done());
  EXPECT_EQ(changed.wait(), "test://server/object has changed");
  // A server that does not know If-Match.
  fail_first({.kind = Kind::other_version});
  Asked other(0, 1000);
  reader_->read(object_, 0, other.out, false, other.done());
  EXPECT_EQ(other.wait(), "test://server/object has changed");
  const StoredObject nothing{"/nothing", 1000, "\"v1\""};
  Asked refused(0, 1000);
  reader_->read(nothing, 0, refused.out, false, refused.done());
  EXPECT_EQ(refused.wait(), "test://server/nothing: ");
  EXPECT_EQ(server_.requests(), 3);
  EXPECT_EQ(reader_->stats().failed, 3);
}

TEST_F(FaultyReaderTest, ThrottlingLowersTheNumber) {
  open({.requests = 64});
  fail_first({.kind = Kind::status, .status = 503}, 30);
  std::list<Asked> ranges;
  for (int i = 0; i < 40; ++i) {
    Asked& asked = ranges.emplace_back(i, 1000);
    reader_->read(object_, i, asked.out, false, asked.done());
  }
  for (Asked& asked : ranges) EXPECT_EQ(asked.wait(), "");
  const StoreStats stats = reader_->stats();
  // A second request of a slow range may have had such an answer, which nobody counts.
  EXPECT_GE(stats.throttled, 20);
  EXPECT_LE(stats.throttled, 30);
  EXPECT_LT(stats.requests_wanted, 64);
}

// The first request of /slow stalls for ever; another one is not told to wait.
TEST_F(FaultyReaderTest, ASlowRangeIsAskedForASecondTime) {
  open();
  server_.set_script([first = std::make_shared<std::atomic<bool>>(true)](const SeenRequest& r) {
    return r.path == "/slow" && first->exchange(false) ? Fault{.kind = Kind::stall} : Fault{};
  });
  const StoreStats stats = read_past_stalls();
  EXPECT_EQ(stats.second_requests, 1);
  EXPECT_EQ(stats.second_requests_won, 1);
  EXPECT_EQ(stats.retries, 0);
  EXPECT_EQ(stats.requests, 2);
  EXPECT_EQ(stats.requests_under_way, 0);
  EXPECT_EQ(stats.bytes_carried, 100'000);
}

// The first requests of /slow stall for ever, one after the other.
TEST_F(FaultyReaderTest, ARangeIsAskedForUntilOneDoesNotStall) {
  open();
  server_.set_script([count = std::make_shared<std::atomic<int>>(0)](const SeenRequest& r) {
    return r.path == "/slow" && (*count)++ < 4 ? Fault{.kind = Kind::stall} : Fault{};
  });
  // So many that it is known what is slow, but not enough for another second request each.
  for (int i = 0; i < 20; ++i) read_well(object_, i, 1000);
  const StoreStats stats = read_past_stalls();
  EXPECT_EQ(stats.retries, 0);
  EXPECT_GE(stats.second_requests, 4);
  EXPECT_EQ(stats.requests_under_way, 0);
  EXPECT_EQ(stats.requests, stats.ranges + stats.second_requests);
}

// One of both fails when the other is still under way.
class TwoRequestsTest : public FaultyReaderTest {
 protected:
  void read_with_one_that_fails(int number) {
    open();
    server_.set_script([number, count = std::make_shared<std::atomic<int>>(0)](const SeenRequest&) {
      return Fault{.kind = (*count)++ == number ? Kind::cut : Kind::none, .waits = true};
    });
    Asked slow(5000, 100'000);
    reader_->read(slow_, 5000, slow.out, false, slow.done());
    server_.wait_for_stalled(2);
    server_.release();
    EXPECT_EQ(slow.wait(), "");
    EXPECT_TRUE(is_right(slow));
    EXPECT_EQ(reader_->stats().retries, 0);
    EXPECT_EQ(slow.calls, 1);
  }
};

TEST_F(TwoRequestsTest, TheFirstMayFail) { read_with_one_that_fails(0); }

TEST_F(TwoRequestsTest, TheSecondMayFail) { read_with_one_that_fails(1); }

// The first one has come to its half when the second one brings other bytes, and goes on then.
TEST_F(TwoRequestsTest, DoNotWriteOnePlace) {
  open();
  server_.set_script([count = std::make_shared<std::atomic<int>>(0)](const SeenRequest&) {
    return Fault{.kind = (*count)++ == 0 ? Kind::stall : Kind::wrong_range};
  });
  Asked slow(5000, 100'000);
  reader_->read(slow_, 5000, slow.out, false, slow.done());
  StoreStats stats;
  while (stats.second_requests == 0 || stats.requests_under_way == 2) {
    std::this_thread::yield();
    stats = reader_->stats();
  }
  EXPECT_EQ(stats.requests_under_way, 1);
  server_.release();
  EXPECT_EQ(slow.wait(), "");
  EXPECT_TRUE(is_right(slow));
  EXPECT_EQ(reader_->stats().second_requests_won, 0);
}

TEST_F(FaultyReaderTest, SecondRequestsAreFew) {
  open({.requests = 20});
  server_.set_script([](const SeenRequest& request) {
    return request.path == "/slow" ? Fault{.kind = Kind::stall} : Fault{};
  });
  const auto begin = std::chrono::steady_clock::now();
  std::list<Asked> stalled;
  for (int i = 0; i < 10; ++i) {
    Asked& asked = stalled.emplace_back(i, 1000);
    reader_->read(slow_, i, asked.out, false, asked.done());
  }
  for (int i = 0; i < 200; ++i) read_well(object_, i, 1000);
  const StoreStats stats = reader_->stats();
  const auto calm = (std::chrono::steady_clock::now() - begin) / HedgeRule::kCalm;
  EXPECT_LE(stats.second_requests, 1 + 210 / 20 + calm);
  server_.release();
  for (Asked& asked : stalled) EXPECT_EQ(asked.wait(), "");
  for (const Asked& asked : stalled) EXPECT_TRUE(is_right(asked));
}

// Thrown by several threads. The server may do so until it ends, after the test's own variables.
class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  unsigned operator()(unsigned sides) {
    const MutexLock lock(mutex_);
    return static_cast<unsigned>(random_() % sides);
  }

 private:
  Mutex mutex_;
  std::mt19937 random_ GUARDED_BY(mutex_);
};

// Thousands of ranges from several threads; every fifth answer fails in some way.
TEST_F(FaultyReaderTest, EveryByteIsRightUnderFaultsAtRandom) {
  constexpr int kThreads = 4, kEach = 1000;
  open({.tries = 50});
  reader_->set_starving(true);
  server_.set_script([dice = std::make_shared<Dice>(1)](const SeenRequest&) {
    constexpr Kind kKinds[] = {Kind::status, Kind::close,     Kind::cut,        Kind::reset,
                               Kind::slow,   Kind::too_short, Kind::too_long,   Kind::whole,
                               Kind::status, Kind::chunked,   Kind::wrong_range};
    if ((*dice)(5) != 0) return Fault{};
    const Kind kind = kKinds[(*dice)(std::size(kKinds))];
    return Fault{.kind = kind, .status = (*dice)(3) == 0 ? 503 : 500};
  });
  std::vector<std::list<Asked>> ranges(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 places(static_cast<unsigned>(t));
      for (int i = 0; i < kEach; ++i) {
        const int64_t length = 1 + places() % (i % 20 == 0 ? 200'000 : 5000);
        Asked& asked = ranges[t].emplace_back(places() % (2'000'000 - length), length);
        reader_->read(i % 2 == 0 ? object_ : other_, asked.offset, asked.out, i % 7 == 0,
                      asked.done());
        if (i % 50 == 0) asked.ended.get_future().wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& list : ranges) {
    for (Asked& asked : list) {
      while (asked.calls == 0) std::this_thread::yield();
      EXPECT_EQ(asked.error, nullptr);
      EXPECT_TRUE(is_right(asked));
    }
  }
  const StoreStats stats = reader_->stats();
  EXPECT_EQ(stats.ranges, kThreads * kEach);
  EXPECT_EQ(stats.failed, 0);
  EXPECT_GT(stats.retries, 0);
  EXPECT_GT(stats.throttled, 0);
  EXPECT_EQ(stats.requests_under_way, 0);
  EXPECT_EQ(stats.requests, stats.ranges + stats.retries + stats.second_requests);
  reader_.reset();
  for (const auto& list : ranges) {
    for (const Asked& asked : list) EXPECT_EQ(asked.calls, 1);
  }
}

// The same, ended at some time.
TEST_F(FaultyReaderTest, EndsUnderFaultsAtRandom) {
  server_.set_script([dice = std::make_shared<Dice>(2)](const SeenRequest&) {
    return Fault{.kind = (*dice)(2) == 0 ? Kind::slow : Kind::reset};
  });
  for (int round = 0; round < 30; ++round) {
    open();
    std::list<Asked> ranges;
    for (int i = 0; i < 100; ++i) {
      Asked& asked = ranges.emplace_back(i * 100, 10'000);
      reader_->read(object_, asked.offset, asked.out, false, asked.done());
    }
    const int64_t enough = server_.requests() + round;
    while (server_.requests() < enough) std::this_thread::yield();
    reader_.reset();
    std::vector<int> calls;
    for (const Asked& asked : ranges) calls.push_back(asked.calls);
    store_.reset();
    auto before = calls.begin();
    for (const Asked& asked : ranges) {
      EXPECT_EQ(asked.calls, *before++);
      EXPECT_LE(asked.calls, 1);
      EXPECT_TRUE(asked.calls == 0 || is_right(asked));
    }
  }
}

}  // namespace
}  // namespace stoker
