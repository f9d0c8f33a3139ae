// Rows that processes share, of samples that are fetched before they are read: each sample is
// fetched by one member, and every announcement to the source ends with a read or with a word that
// there will be none.
#include "pipeline/exchange/shared_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "pipeline/source/forwarding_source.h"
#include "staging/mutex.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/fake_source.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {
namespace {

using Found = SharedRows::Found;
using AheadPosition = std::tuple<Step, int, int>;
constexpr int64_t kAheadLong = int64_t{3600} * 1000000000;
constexpr int kAheadSteps = 4, kBlocks = 32;

class SharedAheadTest : public ::testing::Test {
 protected:
  SharedRows::Options rows_options() const {
    return {.name = "test",
            .folder = folder_.path(),
            .fingerprint = 1,
            .facts = "seed: 1\n",
            .steps = kAheadSteps,
            .blocks = kBlocks,
            .block_bytes = 10,
            .patience_ms = 100000,
            .yield_ms = 100000};
  }
  static SharedAhead::Options ahead_options(Step end_step = 100) {
    return {.ring = {.steps = kAheadSteps, .blocks = kBlocks}, .end_step = end_step};
  }
  static std::set<AheadPosition> all_of(SharedAhead& ahead, NextSample end = NextSample::later) {
    std::set<AheadPosition> places;
    BlockPosition place;
    NextSample next;
    while ((next = ahead.next(place)) == NextSample::found) {
      EXPECT_TRUE(places.insert({place.step, place.device, place.number}).second);
    }
    EXPECT_EQ(next, end);
    return places;
  }

  TempFolder folder_;
  SharedRows a_{rows_options()}, b_{rows_options()};
};

TEST_F(SharedAheadTest, ABlockIsOneMembersAndIsLeftToIt) {
  int of_a = 0;
  for (int number = 0; number < kBlocks; ++number) {
    const BlockPosition place{0, 0, number};
    ASSERT_NE(a_.is_for_this(place), b_.is_for_this(place)) << number;
    SharedRows& owner = a_.is_for_this(place) ? a_ : b_;
    SharedRows& other = a_.is_for_this(place) ? b_ : a_;
    of_a += a_.is_for_this(place);
    EXPECT_EQ(other.look(place, 0).found, Found::busy);
    // Who has waited long enough takes it, and who has its samples does at once.
    const bool waits = number % 3 == 0, has_samples = number % 3 == 1;
    SharedRows& taker = waits || has_samples ? other : owner;
    EXPECT_EQ(taker.look(place, waits ? kAheadLong : 0, has_samples).found, Found::ours) << number;
  }
  EXPECT_EQ(of_a, kBlocks / 2);
}

TEST_F(SharedAheadTest, WhoIsAheadOrFarBehindIsNotAskedForABlock) {
  for (int number = 0; number < kBlocks; ++number) {
    EXPECT_TRUE(a_.is_for_this({3, 0, number}) != b_.is_for_this({3, 0, number}));
  }
  a_.set_position(2 * kAheadSteps);
  for (int number = 0; number < kBlocks; ++number) {
    EXPECT_TRUE(b_.is_for_this({2, 0, number}));
    EXPECT_FALSE(a_.is_for_this({2, 0, number}));
    EXPECT_TRUE(a_.is_for_this({2 * kAheadSteps, 0, number}));
    EXPECT_EQ(a_.look({2 * kAheadSteps, 0, number}, 0).found, Found::alone);
  }
}

TEST_F(SharedAheadTest, WhatAnotherMemberDecodesIsNotFetched) {
  int number = 0;
  while (!a_.is_for_this({0, 0, number})) ++number;
  const BlockPosition place{0, 0, number};
  const std::vector<std::byte> rows(10);
  const auto look = a_.look(place, 0);
  ASSERT_EQ(look.found, Found::ours);
  EXPECT_TRUE(a_.is_for_this(place));
  EXPECT_FALSE(b_.is_for_this(place));
  ASSERT_TRUE(a_.give(place, look.word, rows));
  EXPECT_FALSE(a_.is_for_this(place));
  EXPECT_FALSE(b_.is_for_this(place));
  const BlockPosition next{1, 0, number};
  ASSERT_TRUE(a_.decline(next, a_.look(next, kAheadLong).word));
  EXPECT_TRUE(b_.is_for_this(next));  // each decodes it by itself
}

TEST_F(SharedAheadTest, MembersAnnounceEachBlockOnceBetweenThem) {
  SharedAhead ahead_a(a_, ahead_options()), ahead_b(b_, ahead_options());
  std::set<AheadPosition> both = all_of(ahead_a);
  const std::set<AheadPosition> of_b = all_of(ahead_b);
  EXPECT_EQ(both.size(), kAheadSteps * kBlocks / 2);
  both.insert(of_b.begin(), of_b.end());
  EXPECT_EQ(both.size(), kAheadSteps * kBlocks);
  // No further than rows can be under way.
  for (const AheadPosition& place : both) EXPECT_LT(std::get<0>(place), kAheadSteps);
  for (SharedRows* rows : {&a_, &b_}) rows->set_position(2);
  for (SharedAhead* ahead : {&ahead_a, &ahead_b}) ahead->set_position(2);
  EXPECT_EQ(all_of(ahead_a).size() + all_of(ahead_b).size(), 2 * kBlocks);
}

// One that is a little behind does not have its blocks announced by the others, too.
TEST_F(SharedAheadTest, MembersThatAreNotInStepAnnounceEachBlockOnce) {
  SharedAhead ahead_a(a_, ahead_options()), ahead_b(b_, ahead_options());
  a_.set_position(kAheadSteps);
  ahead_a.set_position(kAheadSteps);
  const std::set<AheadPosition> of_a = all_of(ahead_a);  // steps 4 to 7
  EXPECT_EQ(of_a.size(), kAheadSteps * kBlocks / 2);
  b_.set_position(kAheadSteps);
  ahead_b.set_position(kAheadSteps);
  for (const AheadPosition& place : all_of(ahead_b)) EXPECT_FALSE(of_a.contains(place));
}

TEST_F(SharedAheadTest, TheEndIsSaid) {
  SharedAhead ahead(a_, ahead_options(2));
  EXPECT_EQ(all_of(ahead, NextSample::end).size(), kBlocks);
}

TEST_F(SharedAheadTest, WhatIsReadForAnotherMemberIsAnnouncedThen) {
  SharedAhead ahead(b_, ahead_options());
  const std::set<AheadPosition> announced = all_of(ahead);
  const BlockPosition place{0, 0, a_.is_for_this({0, 0, 0}) ? 0 : kBlocks - 1};
  ASSERT_FALSE(announced.contains({place.step, place.device, place.number}));
  EXPECT_FALSE(ahead.is_announced(place));
  ahead.will_read(place);
  ahead.will_read(place);  // again, because its samples were not in memory
  EXPECT_TRUE(ahead.is_announced(place));
  EXPECT_THAT(all_of(ahead), ::testing::ElementsAre(AheadPosition{0, 0, place.number}));
}

TEST_F(SharedAheadTest, WhatWasTakenIsNotAnnouncedAgain) {
  SharedAhead ahead(a_, ahead_options());
  int mine = 0, other = 0;
  while (!a_.is_for_this({0, 0, mine})) ++mine;
  while (a_.is_for_this({0, 0, other})) ++other;
  BlockPosition place;
  ASSERT_EQ(ahead.next(place), NextSample::found);
  EXPECT_EQ(place.number, mine);
  EXPECT_TRUE(ahead.was_taken({0, 0, mine})) << "it was announced";
  EXPECT_FALSE(ahead.was_taken({0, 0, other}));
  EXPECT_FALSE(ahead.was_taken({0, 0, mine + 1}));  // before it was this one's turn
  EXPECT_FALSE(all_of(ahead).contains({0, 0, mine + 1}));
}

TEST_F(SharedAheadTest, WhoReadsFasterThanItAnnouncesGoesOnWhereItIs) {
  SharedAhead ahead(a_, ahead_options());
  a_.set_position(20);
  b_.set_position(20);
  ahead.set_position(20);
  const std::set<AheadPosition> places = all_of(ahead);
  EXPECT_EQ(std::get<0>(*places.begin()), 20);
  EXPECT_EQ(places.size(), kAheadSteps * kBlocks / 2);
}

// Keeps the books of what it is told, as a source in a store does. One for each feed.
class AheadToldSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  std::optional<StoreStats> store_stats() const override { return StoreStats{}; }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    settle(id, true);
    return source_.read(id, buffer, bytes);
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    const bool is_read = source_.storage().read_cached(id, buffer, bytes);
    if (is_read) settle(id, true);
    return is_read;
  }
  void will_not_read(SampleId id) const override { settle(id, false); }
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override {
    const MutexLock lock(mutex_);
    next_ = std::move(next);
    ask(kWindow);
    return std::make_unique<Following>(*this);
  }

  int64_t reads() const {
    const MutexLock lock(mutex_);
    return reads_;
  }
  // Announcements less reads and words that there will be none, of the sample with the most and of
  // the one with the least.
  std::pair<int64_t, int64_t> open_announcements() const {
    const MutexLock lock(mutex_);
    ask(1 << 20);
    std::pair<int64_t, int64_t> range{0, 0};
    for (const auto& [id, open] : open_) {
      range = {std::min(range.first, open), std::max(range.second, open)};
    }
    return range;
  }

 private:
  static constexpr int64_t kWindow = 30;
  class Following final : public LookAhead {
   public:
    explicit Following(const AheadToldSource& source) : source_(source) {}
    ~Following() override {
      const MutexLock lock(source_.mutex_);
      source_.next_ = nullptr;
    }

   private:
    const AheadToldSource& source_;
  };

  void settle(SampleId id, bool is_read) const {
    const MutexLock lock(mutex_);
    --open_[id];
    ++(is_read ? reads_ : passed_);
    ask(kWindow);
  }
  void ask(int64_t window) const REQUIRES(mutex_) {
    SampleId id = 0;
    while (next_ && told_ - reads_ - passed_ < window && next_(id) == NextSample::found) {
      ++open_[id];
      ++told_;
    }
  }

  mutable Mutex mutex_;
  mutable SampleSequence next_ GUARDED_BY(mutex_);
  mutable std::map<SampleId, int64_t> open_ GUARDED_BY(mutex_);
  mutable int64_t told_ GUARDED_BY(mutex_) = 0;
  mutable int64_t reads_ GUARDED_BY(mutex_) = 0;
  mutable int64_t passed_ GUARDED_BY(mutex_) = 0;
};

LoaderOptions ahead_feed_options(int workers, int io_threads) {
  return {.batch_size = 20,
          .seed = 9,
          .epochs = 2,
          .feed = {.workers = workers, .io_threads = io_threads, .seek_index = "off"},
          .digests = true};
}

std::vector<Delivered> run_one(const std::string& name, int workers, int io_threads, int devices,
                               const AheadToldSource& source) {
  LoaderOptions options = ahead_feed_options(workers, io_threads);
  options.share = {name, 6, 0.5};
  Feed feed(source, crop_spec(), options, devices);
  std::vector<Delivered> batches = feed.all();
  const LoaderStats stats = feed.loader().stats();
  EXPECT_EQ(source.reads(), stats.share.given + stats.share.alone);
  EXPECT_EQ(stats.share.taken + stats.share.given + stats.share.alone, rows_in(batches));
  EXPECT_EQ(source.open_announcements(), (std::pair<int64_t, int64_t>{0, 0}));
  return batches;
}

TEST(SharedFeedsOfAStore, ReadOrPassOverWhateverTheyAnnounce) {
  const auto files = jpeg_source(41);
  for (SampleId id = 0; id < 41; id += 3) files->cache(id);
  int number = 0;
  for (const int devices : {1, 2}) {
    for (const int io_threads : {0, 2}) {
      const auto expected =
          Feed(*files, crop_spec(), ahead_feed_options(1, io_threads), devices).all();
      for (const std::vector<int>& workers :
           {std::vector{1}, std::vector{1, 1}, std::vector{0, 2}, std::vector{3, 1, 2}}) {
        const std::string name =
            "ahead-" + std::to_string(getpid()) + "-" + std::to_string(++number);
        std::vector<std::vector<Delivered>> batches(workers.size());
        std::vector<std::thread> threads;
        for (size_t i = 0; i < workers.size(); ++i) {
          threads.emplace_back([&, i] {
            const AheadToldSource source(*files);
            batches[i] = run_one(name, workers[i], io_threads, devices, source);
          });
        }
        for (std::thread& thread : threads) thread.join();
        for (const auto& each : batches) EXPECT_EQ(each, expected);
      }
    }
  }
}

// One stops early, and one is slow: the others take what is theirs.
TEST(SharedFeedsOfAStore, WhoLeavesOrLagsLeavesNothingUndone) {
  const auto files = jpeg_source(41);
  const auto expected = Feed(*files, crop_spec(), ahead_feed_options(1, 2)).all();
  const std::string name = "ahead-" + std::to_string(getpid()) + "-leaves";
  std::vector<Delivered> batches;
  const AheadToldSource short_source(*files), slow_source(*files), source(*files);
  LoaderOptions options = ahead_feed_options(1, 2);
  options.share = {name, 6, 0};
  Feed leaves(short_source, crop_spec(), options);
  leaves.take(2);
  Feed slow(slow_source, crop_spec(), options);
  std::thread other([&] { batches = run_one(name, 1, 2, 1, source); });
  std::vector<Delivered> late = slow.take(1);
  leaves.destroy();
  other.join();
  for (Delivered& each : slow.all()) late.push_back(std::move(each));
  EXPECT_EQ(batches, expected);
  EXPECT_EQ(late, expected);
  EXPECT_EQ(slow_source.open_announcements(), (std::pair<int64_t, int64_t>{0, 0}));
}

}  // namespace
}  // namespace stoker::testing
