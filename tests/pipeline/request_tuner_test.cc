// How many requests are under way: the tuner in a model of a server, with a clock of the test's.
#include "pipeline/store/request_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <vector>

namespace stoker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using TunerTime = RequestTuner::Time;
using Duration = RequestTuner::Duration;

// Serves `at_once` requests at a time, each for `service` with some noise; the others wait in line.
struct Server {
  int at_once = 32;
  double service = 0.05;  // seconds
  double noise = 0.1;
  int64_t bytes = 100'000;
};

class TunedFeed {
 public:
  explicit TunedFeed(int fixed = 0, int most = 256) : tuner(fixed, most) {
    tuner.set_starving(true);
  }

  // Has as many requests under way as are wanted, or `demand`, for this time.
  void serve(const Server& server, Duration time, int demand = 1 << 30) {
    const TunerTime end = now + time;
    // When each of its places is free again; the first one on top.
    std::priority_queue<TunerTime, std::vector<TunerTime>, std::greater<>> free;
    for (int i = 0; i < server.at_once; ++i) free.push(now);
    std::normal_distribution<double> noise(1, server.noise);
    std::multimap<TunerTime, TunerTime> under_way;  // from the end to the begin
    while (now < end) {
      const int wanted = std::min(demand, tuner.wanted(now));
      while (static_cast<int>(under_way.size()) < wanted) {
        const double service = server.service * std::max(0.2, noise(random));
        const TunerTime done =
            std::max(free.top(), now) + Duration(static_cast<int64_t>(service * 1e9));
        free.pop();
        free.push(done);
        under_way.emplace(done, now);
      }
      const auto [ended, begun] = *under_way.begin();
      const int count = static_cast<int>(under_way.size());
      under_way.erase(under_way.begin());
      now = std::max(now, ended);
      tuner.note_range(now, server.bytes, now - begun, count);
      const int after = tuner.wanted(now);
      if (after != last_wanted) ++changes;
      last_wanted = after;
    }
  }
  int wanted() const { return tuner.wanted(now); }

  RequestTuner tuner;
  TunerTime now{seconds(1000)};
  int changes = 0, last_wanted = 0;
  std::mt19937 random{1};
};

TEST(RequestTuner, FindsAboutWhatTheServerDoesAtOnce) {
  for (const int at_once : {4, 10, 32, 100}) {
    TunedFeed run;
    run.serve({.at_once = at_once}, seconds(60));
    EXPECT_GE(run.wanted(), at_once * 3 / 4) << at_once;
    EXPECT_LE(run.wanted(), std::max(2 * at_once, 2 * RequestTuner::kFirst)) << at_once;
  }
}

TEST(RequestTuner, GrowsUpToTheMost) {
  TunedFeed run;
  run.serve({.at_once = 1000}, seconds(30));
  EXPECT_EQ(run.wanted(), 256);
}

TEST(RequestTuner, Settles) {
  TunedFeed run;
  const Server server{.at_once = 32};
  run.serve(server, seconds(60));
  const int settled = run.wanted();
  run.changes = 0;
  run.serve(server, seconds(600));
  // Trials go on, and each is two changes; the longest pause is 64 intervals of 0.2 s.
  EXPECT_LE(run.changes, 2 * (600 / 12));
  EXPECT_LE(run.wanted(), 3 * settled / 2);
}

TEST(RequestTuner, NoticesThatTheServerDoesMoreLater) {
  TunedFeed run;
  run.serve({.at_once = 8}, seconds(60));
  EXPECT_LE(run.wanted(), 16);
  run.serve({.at_once = 200}, seconds(600));
  EXPECT_GE(run.wanted(), 100);
}

TEST(RequestTuner, StaysWhileNobodyWaits) {
  TunedFeed run;
  run.tuner.set_starving(false);
  run.serve({.at_once = 100}, seconds(60));
  EXPECT_EQ(run.wanted(), int{RequestTuner::kFirst});
}

TEST(RequestTuner, StaysWhileLessIsAskedForThanIsWanted) {
  TunedFeed run;
  // A rate that grows with the demand tells nothing of the server.
  for (int i = 0; i < 200; ++i) run.serve({.at_once = 100}, milliseconds(500), 1 + i % 5);
  EXPECT_EQ(run.wanted(), int{RequestTuner::kFirst});
}

TEST(RequestTuner, AFixedNumberIsFixed) {
  TunedFeed run(5);
  run.serve({.at_once = 100}, seconds(60));
  EXPECT_EQ(run.wanted(), 5);
  EXPECT_EQ(TunedFeed(300).wanted(), 300);
}

TEST(RequestTuner, HalvesWhenThrottledAndGrowsBack) {
  for (const int fixed : {0, 64}) {
    TunedFeed run(fixed);
    run.serve({.at_once = 100}, seconds(60));
    const int before = run.wanted();
    ASSERT_GE(before, 64);
    for (int i = 0; i < 20; ++i) run.tuner.note_throttled(run.now += milliseconds(1));
    EXPECT_EQ(run.wanted(), before / 2);  // once for a burst
    run.tuner.note_throttled(run.now += seconds(1));
    EXPECT_LE(run.wanted(), before * 3 / 10);
    EXPECT_GE(run.wanted(), before / 4);
    run.now += seconds(30);
    EXPECT_EQ(run.wanted(), before);
  }
}

TEST(RequestTuner, IsLoweredByManySuchAnswersOnly) {
  for (const int one_in : {100, 10}) {
    RequestTuner tuner(64, 256);
    RequestTuner::Time now{seconds(1)};
    int least = 64;
    for (int i = 1; i <= 20'000; ++i) {
      now += milliseconds(1);
      if (i % one_in == 0) {
        tuner.note_throttled(now);
      } else {
        tuner.note_range(now, 100'000, milliseconds(64), 64);
      }
      least = std::min(least, tuner.wanted(now));
    }
    EXPECT_EQ(least, one_in == 100 ? 64 : int{RequestTuner::kMin});
  }
}

TEST(RequestTuner, ThrottlingLeavesAFew) {
  for (const int fixed : {0, 2}) {
    TunedFeed run(fixed);
    for (int i = 0; i < 50; ++i) run.tuner.note_throttled(run.now += seconds(1));
    EXPECT_EQ(run.wanted(), fixed == 0 ? int{RequestTuner::kMin} : fixed);
  }
}

}  // namespace
}  // namespace stoker
